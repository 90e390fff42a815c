package window

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type entry = outboxtest.Entry

var (
	newOutbox    = outboxtest.New
	newDatabase  = outboxtest.Database
	event        = outboxtest.Event
	commit       = outboxtest.Commit
	addMany      = outboxtest.CommitMany
	addIn        = outboxtest.Add
	begin        = outboxtest.Begin
	dial         = outboxtest.Dial
	acquireConn  = outboxtest.Acquire
	number       = outboxtest.Number
	entryOf      = outboxtest.EntryOf
	distinct     = outboxtest.Distinct
	requireOrder = outboxtest.RequireOrder
)

// newSession gives a reader that leads, on a connection of its own.
func newSession(t testing.TB, pool *pgxpool.Pool, pageSize int) *Reader {
	t.Helper()
	conn, err := dial(t, pool)(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return takeOver(t, conn, pageSize)
}

// takeOver gives a reader that leads. The one that led before is deposed.
func takeOver(t testing.TB, conn *pgx.Conn, pageSize int) *Reader {
	t.Helper()
	term := &Term{Lease: time.Minute} // which only the epoch ends
	require.NoError(t, conn.QueryRow(t.Context(),
		`update public.outbox_cursor set epoch = epoch + 1 returning epoch`).Scan(&term.Epoch))
	r, err := NewReader(t.Context(), conn, term, NewPager(pageSize, 1<<20))
	require.NoError(t, err)
	return r
}

// sessions are two connections that readers have alternately: a successor is never on its predecessor's. They spare a
// test of many readers what a new backend costs.
type sessions struct {
	conns [2]*pgx.Conn
	used  int
}

func newSessions(t testing.TB, pool *pgxpool.Pool) *sessions {
	t.Helper()
	s := &sessions{}
	for i := range s.conns {
		s.conns[i] = newSession(t, pool, 1).conn
	}
	return s
}

func (s *sessions) next(t testing.TB, pageSize int) *Reader {
	t.Helper()
	s.used = 1 - s.used
	return takeOver(t, s.conns[s.used], pageSize)
}

// leftoverOf is what a restore has left, as long as it is open.
func leftoverOf(r *Reader) []any {
	if r.win == nil {
		return nil
	}
	return r.win.leftover
}
