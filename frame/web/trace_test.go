package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSpansAreNamedByTheRoute(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	router := chi.NewRouter()
	router.Use(traced(otelhttp.WithTracerProvider(provider)))
	var inside string
	router.Get("/v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		exchange := newExchange(Config{}.WithDefaults(), nil)
		inside = exchange.problem(r.Context(), refuse(CodeNotFound, "")).TraceID
		w.WriteHeader(http.StatusTeapot)
	})
	request := httptest.NewRequest(http.MethodGet, "/v1/things/7?token=s3cret", http.NoBody)
	router.ServeHTTP(httptest.NewRecorder(), request)
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/v1/nowhere", http.NoBody))

	spans := recorder.Ended()
	require.Len(t, spans, 2)
	require.Equal(t, "GET /v1/things/{id}", spans[0].Name())
	require.Contains(t, spans[0].Attributes(), attribute.String("http.route", "/v1/things/{id}"))
	require.Equal(t, spans[0].SpanContext().TraceID().String(), inside, "a problem must name its trace")
	for _, span := range spans {
		require.NotContains(t, span.Name(), "nowhere")
		for _, a := range span.Attributes() {
			require.NotContains(t, a.Value.String(), "s3cret", a.Key)
		}
	}
}
