package service

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// StartTracing gives every request of this process a trace, its caller's or a new one: problems and logs name it, and
// the events that the request causes carry it on as traceparent. Nothing is exported; a span processor added here
// would do that. Call it once, before anything serves.
func StartTracing() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider())
	otel.SetTextMapPropagator(propagation.TraceContext{})
}
