package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestSpansAreNamedByTheRoute(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	router := NewRouter(Config{Traces: provider}, slog.New(slog.DiscardHandler))
	var inside string
	router.Get("/v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		inside = ProblemOf(r, refuse(CodeNotFound, "")).TraceID
		w.WriteHeader(http.StatusTeapot)
	})
	request := httptest.NewRequest(http.MethodGet, "/v1/things/7?token=s3cret", http.NoBody)
	router.ServeHTTP(httptest.NewRecorder(), request)
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/v1/nowhere", http.NoBody))

	spans := recorder.Ended()
	require.Len(t, spans, 2)
	require.Equal(t, "GET /v1/things/{id}", spans[0].Name())
	require.Contains(t, spans[0].Attributes(), attribute.String("http.route", "/v1/things/{id}"))
	require.Contains(t, spans[0].Attributes(), attribute.String("http.request.method", "GET"))
	require.Contains(t, spans[0].Attributes(), attribute.Int("http.response.status_code", http.StatusTeapot))
	require.Equal(t, trace.SpanKindServer, spans[0].SpanKind())
	require.Equal(t, spans[0].SpanContext().TraceID().String(), inside, "a problem must name its trace")
	for _, span := range spans {
		require.NotContains(t, span.Name(), "nowhere")
		for _, a := range span.Attributes() {
			require.NotContains(t, a.Value.String(), "s3cret", a.Key)
		}
	}
}

func TestASpanIsPartOfTheCallersTrace(t *testing.T) {
	before := otel.GetTextMapPropagator()
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	otel.SetTextMapPropagator(propagation.TraceContext{})
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	router := NewRouter(Config{Traces: provider}, slog.New(slog.DiscardHandler))
	router.Get("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	router.ServeHTTP(httptest.NewRecorder(), request)

	spans := recorder.Ended()
	require.Len(t, spans, 1)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", spans[0].SpanContext().TraceID().String())
	require.Equal(t, "b7ad6b7169203331", spans[0].Parent().SpanID().String())
	require.Equal(t, codes.Error, spans[0].Status().Code)
}
