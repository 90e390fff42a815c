package eventing

import (
	"context"
	"log/slog"

	"example.com/twinbox/internal/circuit"
)

// quiet passes log lines on, except warnings about a server that may be down: those it reports, and lowers to debug.
// The report is followed by a probe, and if the server is really down the circuit says so, once. Otherwise relay, mail
// sender and each consumer of each partition would say it with every attempt.
type quiet struct {
	slog.Handler
	report func(error)
}

// Handle implements [slog.Handler].
func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn {
		return q.Handler.Handle(ctx, record)
	}
	var found error
	record.Attrs(func(attr slog.Attr) bool {
		err, isError := attr.Value.Any().(error)
		if isError && circuit.Suspicious(err) {
			found = err
		}
		return found == nil
	})
	if found != nil {
		q.report(found)
		record.Level = slog.LevelDebug
		if !q.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.report}
}

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.report} }
