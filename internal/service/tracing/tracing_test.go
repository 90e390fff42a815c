package tracing

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/test/testkit"
)

func open(t *testing.T, endpoint string) (*sdktrace.TracerProvider, func(result string) float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	cfg := Config{Exporter: "otlp", Endpoint: endpoint, Headers: "x-key=k%20y", Sampler: "always_on", Ratio: "1"}
	provider, err := New(t.Context(), cfg, "customer", "local", slog.New(slog.DiscardHandler), registry)
	require.NoError(t, err)
	return provider, func(result string) (counted float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, metric := range families[0].GetMetric() {
			if metric.GetLabel()[0].GetValue() == result {
				counted = metric.GetCounter().GetValue()
			}
		}
		return counted
	}
}

func endSpans(t *testing.T, provider *sdktrace.TracerProvider, spans int) {
	t.Helper()
	for range spans {
		_, span := provider.Tracer("test").Start(t.Context(), "span")
		span.End()
	}
}

func TestSpansThatTheCollectorDoesNotTakeAreDropped(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refusing.Close()
	for _, endpoint := range []string{"http://127.0.0.1:1", refusing.URL} {
		provider, counted := open(t, endpoint)
		endSpans(t, provider, 5)
		testkit.Until(t, func() bool { return counted("dropped") == 5 })
		require.NoError(t, provider.Shutdown(t.Context()))
		require.Zero(t, counted("sent"))
	}
}

func TestWaitingSpansAreSentAtTheEnd(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + r.Header.Get("X-Key") + string(body)
	}))
	defer server.Close()
	provider, counted := open(t, server.URL+"/")
	endSpans(t, provider, 3)
	require.NoError(t, provider.Shutdown(context.Background()))
	body := <-bodies
	require.True(t, strings.HasPrefix(body, "/v1/tracesk y{"), body)
	require.Equal(t, 3, strings.Count(body, `"name":"span"`))
	require.EqualValues(t, 3, counted("sent"))
}

func TestWithoutAnExporterThereIsNone(t *testing.T) {
	t.Parallel()
	provider, err := New(t.Context(), Config{Exporter: "none"}, "customer", "local", slog.Default(),
		prometheus.NewRegistry())
	require.NoError(t, err)
	require.Nil(t, provider)
}

func TestRulesOfTheVariables(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ratio, headers string
		broken         []string
	}{
		{"0.01", "x-key=a=b, y=c", nil},
		{"2", "", []string{"OTEL_TRACES_SAMPLER_ARG"}},
		{"1", "x=%zz", []string{"OTEL_EXPORTER_OTLP_HEADERS"}},
		{"much", "nothing", []string{"OTEL_TRACES_SAMPLER_ARG", "OTEL_EXPORTER_OTLP_HEADERS"}},
	} {
		var broken []string
		for _, rule := range (Config{Ratio: row.ratio, Headers: config.Secret(row.headers)}).Rules() {
			if !rule.Holds {
				broken = append(broken, rule.Variable)
			}
		}
		require.Equal(t, row.broken, broken, row.ratio)
	}
}
