// Package service is what every service's process needs around its own work: commands and exit codes ([Program]),
// signals ([SignalContext]), a logger ([NewLogger]) that says each cause once a minute ([LimitLog]), an admin listener
// with readiness and metrics ([Admin]) and supervised tasks ([Group]).
//
// It knows no business word and reads no environment of its own: cmd/ hands it over.
package service

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A Host is what a service gets from the process it runs in.
type Host struct {
	Log *slog.Logger

	// Ready is called once, when the listeners are open. It may be nil.
	Ready func(Listening)
}

// Listening says where a service can be reached: host and port as bound, also when port 0 was asked for. API is empty
// for a service without one.
type Listening struct{ API, Admin string }

// Announce logs where the service listens and tells the one who started it. Services call it, once.
func (h Host) Announce(at Listening) {
	h.Log.Info("listening", "api", at.API, "admin", at.Admin)
	if h.Ready != nil {
		h.Ready(at)
	}
}

// SignalContext returns a context that the first SIGINT or SIGTERM cancels: the process drains. From then on signals
// have their usual effect again, so a second one ends the process at once.
//
// The handlers stay until a signal or the end of the parent; it is meant for main.
func SignalContext(parent context.Context) context.Context {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// StartTracing gives every request of this process a trace, its caller's or a new one: problems and logs name it, and
// the events that the request causes carry it on as traceparent. Nothing is exported; a span processor added here
// would do that. Call it once, before anything serves.
func StartTracing() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider())
	otel.SetTextMapPropagator(propagation.TraceContext{})
}
