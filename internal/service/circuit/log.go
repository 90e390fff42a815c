package circuit

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"example.com/twinbox/internal/failure"
)

// Quiet lowers lines to debug while a server is down and their error may come from that. The circuits' own lines have
// their error in the logger, and pass.
func Quiet(handler slog.Handler, circuits ...*Circuit) slog.Handler { return quiet{handler, circuits} }

type quiet struct {
	slog.Handler
	circuits []*Circuit
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	if slices.ContainsFunc(q.circuits, (*Circuit).Down) && hasPassingError(record) {
		record.Level = slog.LevelDebug
	}
	if !q.Enabled(ctx, record.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

func hasPassingError(record slog.Record) (has bool) {
	record.Attrs(func(attr slog.Attr) (goOn bool) {
		err, _ := attr.Value.Any().(error)
		has = err != nil && (errors.Is(err, context.DeadlineExceeded) || failure.Classify(err) == failure.Transient)
		return !has
	})
	return has
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.circuits}
}

func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.circuits}
}
