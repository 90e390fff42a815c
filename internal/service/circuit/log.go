package circuit

import (
	"context"
	"log/slog"
	"slices"
)

// Quiet lowers lines to debug if a circuit explains their error. The circuits' own lines pass: their error is an
// attribute of the logger.
func Quiet(handler slog.Handler, circuits ...*Circuit) slog.Handler { return quiet{handler, circuits} }

type quiet struct {
	slog.Handler
	circuits []*Circuit
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Attrs(func(attr slog.Attr) bool {
		err, is := attr.Value.Any().(error)
		if is && slices.ContainsFunc(q.circuits, func(c *Circuit) bool { return c.Explains(err) }) {
			record.Level = slog.LevelDebug
		}
		return !is
	})
	if !q.Enabled(ctx, record.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.circuits}
}

func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.circuits}
}
