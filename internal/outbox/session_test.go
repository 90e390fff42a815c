package outbox

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/pgtest"
)

// dial opens a relay's session on the pool's database, not one of the pool's own.
func dial(t testing.TB, pool *pgxpool.Pool) func(context.Context) (*pgx.Conn, error) {
	t.Helper()
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, pgtest.DSN(pool)) }
}

// newSession gives a reader that leads, on a connection of its own.
func newSession(t testing.TB, pool *pgxpool.Pool, pageSize int) *reader {
	t.Helper()
	conn, err := connect(t.Context(), dial(t, pool))
	require.NoError(t, err)
	t.Cleanup(func() { closeSession(context.Background(), conn) })
	return takeOver(t, pool, conn, pageSize)
}

// takeOver gives a reader that leads. Whoever led before is deposed, as if its lease had run out.
func takeOver(t testing.TB, pool *pgxpool.Pool, conn *pgx.Conn, pageSize int) *reader {
	t.Helper()
	endLease(t, pool)
	seen, err := look(t.Context(), conn)
	require.NoError(t, err)
	term, err := acquire(t.Context(), conn, "test", testLease, seen)
	require.NoError(t, err)
	require.NotNil(t, term)
	r, err := newReader(t.Context(), conn, term, newPager(pageSize, 1<<20))
	require.NoError(t, err)
	return r
}

// sessions are two connections that readers have in turns: a successor is never on its predecessor's. They spare a test
// of many readers what a new backend costs.
type sessions struct {
	pool  *pgxpool.Pool
	conns [2]*pgx.Conn
	turn  int
}

func newSessions(t testing.TB, pool *pgxpool.Pool) *sessions {
	t.Helper()
	s := &sessions{pool: pool}
	for i := range s.conns {
		s.conns[i] = newSession(t, pool, 1).conn
	}
	return s
}

func (s *sessions) next(t testing.TB, pageSize int) *reader {
	t.Helper()
	s.turn = 1 - s.turn
	return takeOver(t, s.pool, s.conns[s.turn], pageSize)
}
