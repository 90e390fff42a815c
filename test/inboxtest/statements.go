package inboxtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/test/testkit"
)

// statements makes the first attempt at an event fail before its first statement, the next one after it, and so on. As
// a tracer it sees every statement, or batch.
type statements struct {
	mu      sync.Mutex
	running bool           // a handler does
	left    int            // statements still allowed
	refused bool           // it wanted more
	allowed map[string]int // by event, to its next attempt
}

func (s *statements) pool(t testing.TB, on *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	cfg := on.Config()
	cfg.ConnConfig.Tracer = testkit.Tracer{Begin: s.admit}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err, "open pool")
	t.Cleanup(pool.Close)
	return pool
}

var errBehindStatement = errors.New("behind a statement")

// around fails the attempt also where the handler ignores an error.
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
