package tracing

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/test/testkit"
)

func newExporter(t *testing.T, endpoint string) *Exporter {
	t.Helper()
	return New(Config{Exporter: "otlp", Endpoint: endpoint, Sampler: "always_on", Ratio: "1"}, "customer", "local",
		slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

func (e *Exporter) make(t *testing.T, spans int) {
	t.Helper()
	tracer := e.Provider().Tracer("test")
	for range spans {
		_, span := tracer.Start(t.Context(), "span")
		span.End()
	}
}

func (e *Exporter) counted(result string) int {
	return int(testutil.ToFloat64(e.spans.WithLabelValues(result)))
}

// A collector that is down: spans wait, then they are dropped and counted. Who ends one never waits.
func TestWithoutACollectorSpansAreDropped(t *testing.T) {
	t.Parallel()
	e := newExporter(t, "http://127.0.0.1:1")
	e.make(t, queueSpans+5)
	require.Equal(t, 5, e.counted("dropped"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, e.Run(ctx))
	require.Equal(t, queueSpans+5, e.counted("dropped"), "the last attempt fails too")
	require.Zero(t, e.counted("sent"))
}

// A collector that is busy gets the same spans again; what waits when the service stops is sent then.
func TestABusyCollectorIsAskedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	bodies := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		bodies <- string(body)
	}))
	defer server.Close()
	e := newExporter(t, server.URL)
	e.make(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	require.Equal(t, 3, strings.Count(<-bodies, `"name":"span"`))
	testkit.Until(t, func() bool { return e.counted("sent") == 3 })
	e.make(t, 2)
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, 2, strings.Count(<-bodies, `"name":"span"`))
	require.Equal(t, 5, e.counted("sent"))
	require.Zero(t, e.counted("dropped"))
}

func TestARefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	e := newExporter(t, server.URL)
	e.make(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	testkit.Until(t, func() bool { return e.counted("dropped") == 3 })
	cancel()
	require.NoError(t, <-ended)
}

func TestWithoutAnExporterThereIsNone(t *testing.T) {
	t.Parallel()
	require.Nil(t, New(Config{Exporter: "none"}, "customer", "local", slog.Default(), prometheus.NewRegistry()))
}

func TestRulesOfTheVariables(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ratio, headers string
		broken         []string
	}{
		{"0.01", "x-key=a=b, y=c", nil},
		{"2", "", []string{"OTEL_TRACES_SAMPLER_ARG"}},
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
