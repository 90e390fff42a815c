package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// traced gives the request a server span, named by the route: the path holds ids.
func traced(options ...otelhttp.Option) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			nameSpan(r)
		})
		return otelhttp.NewHandler(named, "http", options...)
	}
}

// nameSpan runs after the router, which alone knows the route.
func nameSpan(r *http.Request) {
	route := chi.RouteContext(r.Context()).RoutePattern()
	if route == "" {
		return
	}
	name := attribute.String("http.route", route)
	span := trace.SpanFromContext(r.Context())
	span.SetName(methodLabel(r.Method) + " " + route)
	span.SetAttributes(name)
	if labeler, ok := otelhttp.LabelerFromContext(r.Context()); ok {
		labeler.Add(name)
	}
}
