package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/test/testkit"
)

func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return response
}

func readyz(t *testing.T, admin *service.Admin) (int, service.Readiness) {
	t.Helper()
	response := get(t, admin, "/readyz")
	require.Equal(t, "application/json", response.Header().Get("Content-Type"))
	var report service.Readiness
	require.NoError(t, json.Unmarshal(response.Body.Bytes(), &report))
	return response.Code, report
}

func TestAdmin_Document(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: quiet})
	require.Equal(t, http.StatusNotFound, get(t, admin, "/openapi.json").Code, "a service without an API has none")
	admin.Document([]byte(`{"openapi":"3.1.0"}`))
	answer := get(t, admin, "/openapi.json")
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	require.Equal(t, `{"openapi":"3.1.0"}`, answer.Body.String())
}

func TestAdmin_Readiness(t *testing.T) {
	t.Parallel()
	draining := make(chan struct{})
	admin := service.NewAdmin(service.AdminConfig{Log: quiet, Draining: draining})
	code, report := readyz(t, admin)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, service.Readiness{Status: "ready", Checks: []service.CheckResult{}}, report)

	var broken error
	admin.Check("database", func(context.Context) error { return broken })
	admin.Check("panics", func(context.Context) error {
		if broken != nil {
			panic("oh")
		}
		return nil
	})
	code, report = readyz(t, admin)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ready", report.Status)

	broken = errors.New("connect:\n  refused " + strings.Repeat("x", 5000))
	code, report = readyz(t, admin)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "not_ready", report.Status)
	require.Equal(t, "database", report.Checks[0].Name)
	require.Equal(t, "failing", report.Checks[0].Status)
	require.True(t, strings.HasPrefix(report.Checks[0].Reason, "connect: refused xxx"), report.Checks[0].Reason)
	require.Less(t, len(report.Checks[0].Reason), 2100)
	require.Equal(t, "panic: oh", report.Checks[1].Reason)

	broken = nil
	close(draining)
	code, report = readyz(t, admin)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "draining", report.Status)
	require.Equal(t, "ok", report.Checks[0].Status)
}

func TestAdmin_ReadinessIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		admin := service.NewAdmin(service.AdminConfig{Log: quiet, CheckTimeout: 20 * time.Millisecond})
		release, started := make(chan struct{}), make(chan struct{}, 9)
		admin.Check("deaf", func(context.Context) error { started <- struct{}{}; <-release; return nil })
		admin.Check("polite", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		code, report := readyz(t, admin)
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "no answer within 20ms", report.Checks[0].Reason)
		require.Equal(t, "no answer within 20ms", report.Checks[1].Reason)

		_, report = readyz(t, admin)
		require.Equal(t, "no answer within 20ms", report.Checks[0].Reason)
		require.Len(t, started, 1, "a deaf check does not pile up")
		close(release)
		synctest.Wait()
		_, report = readyz(t, admin)
		require.Equal(t, "ok", report.Checks[0].Status, "and is asked again once it has returned")
	})
}

func TestAdmin_Metrics(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: quiet})
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "signups_total", Help: "h"})
	admin.Registry().MustRegister(counter)
	counter.Inc()
	body := get(t, admin, "/metrics").Body.String()
	for _, want := range []string{"signups_total 1", "go_goroutines ", "process_start_time_seconds ", "go_build_info{"} {
		require.Contains(t, body, want)
	}
}

func serve(t *testing.T, admin *service.Admin) (addr string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return listener.Addr().String()
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: quiet})
	var broken error
	admin.Check("database", func(context.Context) error { return broken })
	addr := serve(t, admin)
	_, port, _ := net.SplitHostPort(addr)
	for _, listen := range []string{addr, ":" + port, "0.0.0.0:" + port} {
		var out strings.Builder
		require.NoError(t, service.Healthcheck(t.Context(), listen, &out), listen)
		require.Contains(t, out.String(), "ready\n  ok       database")
	}
	broken = errors.New("down")
	var out strings.Builder
	require.EqualError(t, service.Healthcheck(t.Context(), addr, &out), "not ready")
	require.Contains(t, out.String(), "failing  database down")
	require.Equal(t, "alive\n", get(t, admin, "/livez").Body.String(), "no server is asked")

	require.ErrorContains(t, service.Healthcheck(t.Context(), testkit.ReservePort(t), io.Discard), "ask admin listener")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	require.ErrorContains(t, service.Healthcheck(t.Context(), strings.TrimPrefix(other.URL, "http://"), io.Discard),
		"read readiness: status 404")
}

func TestAdmin_AnswersToItsOwnNamesAlone(t *testing.T) {
	t.Parallel()
	addr := serve(t, service.NewAdmin(service.AdminConfig{Log: quiet, Hosts: []string{"customer"}}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{"customer:8081": 200, "evil.example": 421} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
		require.NoError(t, err)
		request.Host = host
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, host)
	}
}

func TestAdmin_ReadinessOfSomeChecks(t *testing.T) {
	t.Parallel()
	draining := make(chan struct{})
	admin := service.NewAdmin(service.AdminConfig{Log: quiet, Draining: draining})
	admin.Check("database", func(context.Context) error { return nil })
	admin.Check("broker", func(context.Context) error { return errors.New("away") })
	admin.Check("held events", func(context.Context) error { return nil })
	for path, want := range map[string]int{
		"/readyz":               503,
		"/readyz?only=database": 200,
		"/readyz?only=database&only=held%20events":   200,
		"/readyz?only=database&only=broker":          503,
		"/readyz?only=databse":                       400,
		"/readyz?only=":                              400,
		"/readyz?only=database&only=":                400,
		"/readyz?only=database&only=database&x=what": 200,
	} {
		require.Equal(t, want, get(t, admin, path).Code, path)
	}
	require.Contains(t, get(t, admin, "/readyz?only=x").Body.String(), "there are: database, broker, held events")
	require.NotContains(t, get(t, admin, "/readyz?only=database").Body.String(), "broker")
	close(draining)
	require.Equal(t, 503, get(t, admin, "/readyz?only=database").Code, "a draining service accepts nothing new")
}

func TestAdmin_ReadinessNamesAnOutageOnce(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: quiet})
	admin.Check("database", func(context.Context) error {
		return &circuit.DownError{Name: "database", Err: errors.New("refused")}
	})
	admin.Check("relay", func(context.Context) error {
		return fmt.Errorf("read status: %w", &circuit.DownError{Name: "database", Err: errors.New("refused")})
	})
	code, report := readyz(t, admin)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, service.StatusNotReady, report.Status)
	require.Equal(t, service.StatusFailing, report.Checks[0].Status)
	require.Equal(t, service.StatusWaiting, report.Checks[1].Status)
	require.Equal(t, "for database", report.Checks[1].Reason)
}
