package inboxtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/failure"
)

// statements lets attempts at events fail after a number of their handlers' statements: the first attempt before the
// first statement, the next one behind it, and so on, until a handler needs no more than it may send. As the tracer
// of the connections it sees each statement, or batch of them, from any sender.
type statements struct {
	mu      sync.Mutex
	running bool           // a handler does
	left    int            // how many it may still send
	refused bool           // it wanted more
	allowed map[string]int // by event, to its next attempt
}

var (
	_ pgx.QueryTracer    = (*statements)(nil)
	_ pgx.BatchTracer    = (*statements)(nil)
	_ pgx.CopyFromTracer = (*statements)(nil)
)

// pool is another pool on the same database, whose statements are seen.
func (s *statements) pool(t testing.TB, on *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	cfg := on.Config()
	cfg.ConnConfig.Tracer = s
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var errBehindStatement = errors.New("behind a statement")

// around lets attempts fail, also where the handler does not care for an error of its statements.
func (s *statements) around(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		s.begin(msg.UUID)
		produced, err := next(msg)
		if s.end(msg.UUID) {
			return nil, failure.AsTransient(errBehindStatement)
		}
		return produced, err
	}
}

func (s *statements) begin(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.refused, s.left = true, false, s.allowed[id]
}

// end says whether the attempt has to fail.
func (s *statements) end(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if !s.refused && s.left > 0 {
		return false
	}
	s.allowed[id]++
	return true
}

// admit ends the context of a statement that the handler may not send any more.
func (s *statements) admit(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return ctx
	}
	if s.left > 0 {
		s.left--
		return ctx
	}
	s.refused = true
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errBehindStatement)
	return ctx
}

// TraceQueryStart implements [pgx.QueryTracer].
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return s.admit(ctx)
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return s.admit(ctx)
}

// TraceBatchQuery implements [pgx.BatchTracer]: the statements of a batch are sent together.
func (*statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements [pgx.CopyFromTracer].
func (s *statements) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData,
) context.Context {
	return s.admit(ctx)
}

// TraceCopyFromEnd implements [pgx.CopyFromTracer].
func (*statements) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
