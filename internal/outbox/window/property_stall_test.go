package window

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/test/outboxtest"
)

// randomStallsLoseNothing runs random schedules of writers of which any may be stopped between the defaults of its row,
// on either side of the transaction id, for as long as it pleases, with rounds of a reader and restarts in between.
// Every committed row is read once. With the other column order the first schedules lose one.
func randomStallsLoseNothing(t *testing.T, pool *pgxpool.Pool) {
	_, err := pool.Exec(t.Context(),
		stallingSQL+`create table public.outbox (`+xidColumnSQL+positionColumnSQL+restOfTableSQL)
	require.NoError(t, err)
	s := &stalls{
		t: t, pool: pool, reader: newSession(t, pool, 10), taken: map[int64]int{},
		others: ownConn(t, pool), locks: ownConn(t, pool),
	}
	for n := range 3 {
		s.free = append(s.free, s.newStalled(10+n))
	}
	insertUnstalled(t, s.others) // a sequence's first number is logged, which takes a transaction id by itself
	rapid.Check(t, func(rt *rapid.T) {
		s.T = rt
		rt.Repeat(map[string]func(*rapid.T){
			"write": s.write, "undo": s.undo, "stall": s.stall, "go on": s.goOn,
			"open a window": s.openWindow, "round": s.round, "restart": s.restart,
		})
		s.finish()
	})
}

// stalls is one table's history: the cases follow each other in it.
type stalls struct {
	*rapid.T
	t      *testing.T
	pool   *pgxpool.Pool
	reader *Reader
	others *pgx.Conn // writes without being stopped
	locks  *pgx.Conn // holds the locks that writers are stopped by
	free   []*stalled
	busy   []*stalled
	taken  map[int64]int // how often each position was read
}

// stalled is a writer that can be stopped.
type stalled struct {
	conn *pgx.Conn
	lock int
	done chan error
}

func (s *stalls) newStalled(lock int) *stalled {
	return &stalled{conn: ownConn(s.t, s.pool), lock: lock, done: make(chan error, 1)}
}

// ownConn is not the pool's, which has few.
func ownConn(t *testing.T, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := dial(t, pool)(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *stalls) exec(conn *pgx.Conn, sql string) {
	_, err := conn.Exec(s.t.Context(), sql)
	require.NoError(s, err, sql)
}

func (s *stalls) write(*rapid.T) { s.exec(s.others, insertRawSQL) }

func (s *stalls) undo(*rapid.T) { s.exec(s.others, `begin; `+insertRawSQL+`; rollback`) }

func (s *stalls) stall(*rapid.T) {
	if len(s.free) == 0 {
		s.Skip("all of them are stopped")
	}
	w := s.free[0]
	s.free, s.busy = s.free[1:], append(s.busy, w)
	side, other := "before", "after"
	if rapid.Bool().Draw(s.T, "after the id") {
		side, other = other, side
	}
	s.exec(s.locks, fmt.Sprintf(`select pg_advisory_lock(%d)`, w.lock))
	s.exec(w.conn, fmt.Sprintf(`set stall.%s = %d; set stall.%s = 0`, side, w.lock, other))
	go func() {
		_, err := w.conn.Exec(context.WithoutCancel(s.t.Context()), insertRawSQL)
		w.done <- err
	}()
	awaitAdvisoryWait(s.t, s.pool, w.conn)
}

func (s *stalls) goOn(*rapid.T) {
	if len(s.busy) == 0 {
		s.Skip("none is stopped")
	}
	i := rapid.IntRange(0, len(s.busy)-1).Draw(s.T, "writer")
	s.release(i)
}

func (s *stalls) release(i int) {
	w := s.busy[i]
	s.busy, s.free = slices.Delete(s.busy, i, i+1), append(s.free, w)
	s.exec(s.locks, fmt.Sprintf(`select pg_advisory_unlock(%d)`, w.lock))
	require.NoError(s, <-w.done)
}

// openWindow lets the others go on before the window is closed.
func (s *stalls) openWindow(*rapid.T) { require.NoError(s, s.reader.open(s.t.Context())) }

func (s *stalls) round(*rapid.T) {
	_, err := s.reader.round(s.t.Context(), func(r Record) { s.taken[r.Position]++ })
	require.NoError(s, err)
}

// restart lets another reader go on from what is stored.
func (s *stalls) restart(*rapid.T) {
	s.reader = takeOver(s.t, s.reader.conn, 10)
}

// finish lets all writers go on and reads the rest.
func (s *stalls) finish() {
	for len(s.busy) > 0 {
		s.release(0)
	}
	for more := true; more; {
		var err error
		more, err = s.reader.round(s.t.Context(), func(r Record) { s.taken[r.Position]++ })
		require.NoError(s, err)
	}
	for _, position := range outboxtest.Column[int64](s.t, s.pool, `select position from outbox`) {
		require.Equal(s, 1, s.taken[position], "position %d", position)
	}
}
