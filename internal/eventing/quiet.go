package eventing

import (
	"context"
	"log/slog"

	"example.com/twinbox/internal/circuit"
)

// quiet passes log lines on. A warning about a server that may be down is also a report to the circuits, and while one
// of them is down or about to find out, such warnings are lowered to debug: the circuit says it once, where relay, mail
// sender and the consumers of all partitions would say it with every attempt.
type quiet struct {
	slog.Handler
	dependencies
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
	if found == nil {
		return q.Handler.Handle(ctx, record)
	}
	if q.unsettled() {
		record.Level = slog.LevelDebug
	}
	q.report(found)
	if !q.Enabled(ctx, record.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.dependencies}
}

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.dependencies}
}
