// Package service is what every service's process needs around its own work: commands and exit codes ([Program]),
// signals ([SignalContext]), a logger ([NewLogger]) that says each cause once a minute ([LimitLog]), an admin listener
// with readiness and metrics ([Admin]) and supervised tasks ([Group]).
//
// It knows no business word and reads no environment of its own: cmd/ hands it over.
package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/twinbox/engine/failure"
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

// NewLogger returns a logger that writes records of the level (debug, info, warn or error) and above, as "text" or
// "json". Times are UTC with any TZ: operators read records of several machines side by side. Durations are text (25s)
// in both forms; slog's JSON would count nanoseconds.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("create logger: unknown level %q", level)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: Readable}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("create logger: unknown format %q", format)
}

// maxLogText is the longest text of a record that is no error's: room for a stack.
const maxLogText = 16 << 10

// Readable is what a logger does to each attribute (ReplaceAttr): durations as text, times in UTC, and no text longer
// than [failure.MaxText], for an error, or 16 KiB: errors and what they quote may come from the other side.
func Readable(groups []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is && a.Value.Kind() == slog.KindAny {
		return slog.String(a.Key, failure.Brief(err.Error()))
	}
	switch {
	case a.Value.Kind() == slog.KindString:
		return slog.String(a.Key, failure.Cut(a.Value.String(), maxLogText))
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.Time(slog.TimeKey, a.Value.Time().UTC())
	}
	return a
}
