package crashtest

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Statement is the nth statement, or batch of statements, that a process sends to PostgreSQL, and on which side of it
// the process dies. As the tracer of its connections it reaches every statement there is, which a list of named crash
// points does not.
type Statement struct {
	Nth   int  // counted from 1 over all connections; 0: none
	After bool // when the answer has come instead of before it is sent

	sent atomic.Int64
}

var (
	_ pgx.QueryTracer = (*Statement)(nil)
	_ pgx.BatchTracer = (*Statement)(nil)
)

// TraceQueryStart counts and, if this is the one, dies or marks it.
func (s *Statement) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return s.begin(ctx)
}

// TraceQueryEnd dies if the answer was that of the marked statement.
func (*Statement) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

// TraceBatchStart is TraceQueryStart for a batch, which is one round trip.
func (s *Statement) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return s.begin(ctx)
}

// TraceBatchQuery does nothing: the statements of a batch are sent together.
func (*Statement) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is TraceQueryEnd for a batch.
func (*Statement) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

type dueKey struct{}

func (s *Statement) begin(ctx context.Context) context.Context {
	if s.sent.Add(1) != int64(s.Nth) {
		return ctx
	}
	if !s.After {
		Die()
	}
	return context.WithValue(ctx, dueKey{}, true)
}

func end(ctx context.Context) {
	if ctx.Value(dueKey{}) != nil {
		Die()
	}
}
