package circuit

import (
	"context"
	"log/slog"
	"slices"
)

// Quiet lowers lines to debug if a circuit explains their error. A line about a server that is only suspected waits for
// the probe. The circuits' own lines pass: their error is an attribute of the logger.
func Quiet(handler slog.Handler, circuits ...*Circuit) slog.Handler { return quiet{handler, circuits} }

type quiet struct {
	slog.Handler
	circuits []*Circuit
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	var err error
	record.Attrs(func(attr slog.Attr) (goOn bool) {
		err, _ = attr.Value.Any().(error)
		return err == nil
	})
	if i := slices.IndexFunc(q.circuits, func(c *Circuit) bool { return c.Explains(err) }); err != nil && i >= 0 {
		record = record.Clone()
		q.circuits[i].afterProbe(func(isDown bool) { _ = q.handleExplained(ctx, record, i, isDown) })
		return nil
	}
	if !q.Enabled(ctx, record.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

// If the server is up, another one may explain the line.
func (q quiet) handleExplained(ctx context.Context, record slog.Record, by int, isDown bool) error {
	left := quiet{q.Handler, nil}
	if isDown {
		record.Level = slog.LevelDebug
	} else {
		left.circuits = slices.Concat(q.circuits[:by], q.circuits[by+1:])
	}
	return left.Handle(ctx, record)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.circuits}
}

func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.circuits}
}
