package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced gives the request a server span in its caller's trace, or in a new one. It is named by the route: the path
// holds ids, and is in no attribute either. The names are OpenTelemetry's for HTTP servers.
func traced(provider trace.TracerProvider) func(http.Handler) http.Handler {
	tracer := provider.Tracer("example.com/twinbox/frame/web")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			method := methodLabel(r.Method)
			ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer))
			defer span.End()
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			defer func() { describe(span, method, chi.RouteContext(ctx).RoutePattern(), answer.Status()) }()
			next.ServeHTTP(answer, r.WithContext(ctx))
		})
	}
}

// describe runs after the router, which alone knows the route, and also when the answer was cut off.
func describe(span trace.Span, method, route string, status int) {
	span.SetAttributes(attribute.String("http.request.method", method), attribute.Int("http.response.status_code", status))
	if route != "" {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}
