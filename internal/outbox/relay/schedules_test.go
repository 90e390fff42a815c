package relay

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
)

// TestRandomSchedules plays all sessions in one goroutine, so a schedule is repeatable and shrinks. More:
// -rapid.checks=N.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	readers := newSessions(t, pool)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		s := newSchedule(rt, t, o, pool, readers, cases)
		defer s.abandon()
		rt.Repeat(map[string]func(*rapid.T){
			"begin": s.begin, "take an id early": s.takeID, "add": s.add, "savepoint": s.savepoint,
			"leave savepoint": s.leaveSavepoint, "end": s.end, "prepare": s.prepare, "end prepared": s.endPrepared,
			"step": s.step, "finish": s.finish, "crash": s.crash, "": s.check,
		})
		s.endAll()
	})
}

type schedule struct {
	*rapid.T
	t       *testing.T
	o       *outbox.Outbox
	pool    *pgxpool.Pool
	prefix  string // of this case's keys: all cases share the table
	readers *sessions
	reader  *reader
	size    int

	open     []*openTx
	prepared []*openTx
	ids      int
	wire     []entry
	crashed  bool
	want     map[string]bool
	taken    map[int64]int
}

type openTx struct {
	conn   *pgxpool.Conn
	gid    string
	levels []level
}

type level struct {
	keys []string
	ids  []string
}

const maxOpen = 5

func newSchedule(
	rt *rapid.T, t *testing.T, o *outbox.Outbox, pool *pgxpool.Pool, readers *sessions, n int,
) *schedule {
	s := &schedule{
		T: rt, t: t, o: o, pool: pool, readers: readers, prefix: fmt.Sprintf("case%d-", n),
		want: map[string]bool{}, taken: map[int64]int{},
		size: rapid.IntRange(1, 5).Draw(rt, "page size"),
	}
	s.reader = readers.next(t, s.size)
	read(t, s.reader) // of a failed case
	return s
}

func (s *schedule) exec(tx *openTx, sql string) {
	_, err := tx.conn.Exec(s.t.Context(), sql)
	require.NoError(s, err, sql)
}

func (s *schedule) pick(from []*openTx) int {
	if len(from) == 0 {
		s.Skip("none")
	}
	return rapid.IntRange(0, len(from)-1).Draw(s.T, "transaction")
}

func (s *schedule) begin(*rapid.T) {
	if len(s.open)+len(s.prepared) >= maxOpen {
		s.Skip("enough")
	}
	conn, err := s.pool.Acquire(s.t.Context())
	require.NoError(s, err)
	tx := &openTx{conn: conn, levels: make([]level, 1)}
	s.exec(tx, `begin`)
	s.open = append(s.open, tx)
}

func (s *schedule) takeID(*rapid.T) {
	s.exec(s.open[s.pick(s.open)], `select pg_current_xact_id()`)
}

// locked reports whether another transaction holds the key: an Add would block this goroutine.
func (s *schedule) locked(key string, by *openTx) bool {
	for _, tx := range append(slices.Clone(s.open), s.prepared...) {
		for _, l := range tx.levels {
			if tx != by && slices.Contains(l.keys, key) {
				return true
			}
		}
	}
	return false
}

func (s *schedule) add(*rapid.T) {
	tx := s.open[s.pick(s.open)]
	var events []event.Event
	for range rapid.IntRange(1, 3).Draw(s.T, "events") {
		key := s.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(s.T, "key")
		if s.locked(key, tx) {
			continue
		}
		events = append(events, newEvent(key))
	}
	added, err := s.o.Add(s.t.Context(), connTx{conn: tx.conn}, events...)
	require.NoError(s, err)
	top := &tx.levels[len(tx.levels)-1]
	for i, a := range added {
		top.ids, top.keys = append(top.ids, a.ID), append(top.keys, events[i].Key)
	}
}

func (s *schedule) savepoint(*rapid.T) {
	tx := s.open[s.pick(s.open)]
	s.exec(tx, `savepoint s`)
	tx.levels = append(tx.levels, level{})
}

func (s *schedule) leaveSavepoint(*rapid.T) {
	tx := s.open[s.pick(s.open)]
	n := len(tx.levels) - 1
	if n == 0 {
		s.Skip("none")
	}
	top := tx.levels[n]
	tx.levels = tx.levels[:n]
	if rapid.Bool().Draw(s.T, "roll back") {
		s.exec(tx, `rollback to savepoint s; release savepoint s`)
		return
	}
	s.exec(tx, `release savepoint s`)
	tx.levels[n-1].ids = append(tx.levels[n-1].ids, top.ids...)
	tx.levels[n-1].keys = append(tx.levels[n-1].keys, top.keys...)
}

func (s *schedule) end(*rapid.T) {
	i := s.pick(s.open)
	tx := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	if rapid.IntRange(0, 3).Draw(s.T, "roll back") == 3 {
		s.exec(tx, `rollback`)
	} else {
		s.exec(tx, `commit`)
		s.committed(tx)
	}
	tx.conn.Release()
}

func (s *schedule) committed(tx *openTx) {
	for _, l := range tx.levels {
		for _, id := range l.ids {
			s.want[id] = true
		}
	}
}

func (s *schedule) prepare(*rapid.T) {
	i := s.pick(s.open)
	tx := s.open[i]
	s.ids++
	tx.gid = fmt.Sprintf("%s%d", s.prefix, s.ids)
	s.open = slices.Delete(s.open, i, i+1)
	s.exec(tx, fmt.Sprintf(`prepare transaction '%s'`, tx.gid))
	s.prepared = append(s.prepared, tx)
}

func (s *schedule) endPrepared(*rapid.T) {
	i := s.pick(s.prepared)
	tx := s.prepared[i]
	s.prepared = slices.Delete(s.prepared, i, i+1)
	if rapid.Bool().Draw(s.T, "roll back") {
		s.exec(tx, fmt.Sprintf(`rollback prepared '%s'`, tx.gid))
	} else {
		s.exec(tx, fmt.Sprintf(`commit prepared '%s'`, tx.gid))
		s.committed(tx)
	}
	tx.conn.Release()
}

func (s *schedule) seen(rec record) {
	s.taken[rec.Position]++
	s.wire = append(s.wire, entryOf(rec.Topic, rec.Message()))
}

func (s *schedule) step(*rapid.T) { s.publish() }

func (s *schedule) publish() (found bool) {
	found, err := s.reader.step(s.t.Context(), s.seen)
	require.NoError(s, err)
	return found
}

func (s *schedule) finish(*rapid.T) { require.NoError(s, s.reader.finish(s.t.Context())) }

func (s *schedule) crash(*rapid.T) {
	old := s.reader
	w, page, _, err := old.look(s.t.Context())
	require.NoError(s, err)
	if len(page) > 0 && rapid.Bool().Draw(s.T, "stored") {
		_, err := old.store(s.t.Context(), w, nil)
		require.NoError(s, err)
		for _, rec := range page[:rapid.IntRange(0, len(page)).Draw(s.T, "published")] {
			s.seen(rec)
		}
	}
	s.crashed = true
	s.reader = s.readers.next(s.t, s.size)
	if old.open != nil {
		require.ErrorIs(s, old.finish(s.t.Context()), errDeposed)
	}
}

func (s *schedule) check(*rapid.T) {
	requireOrder(s.TB(), s.wire)
	for _, e := range s.wire {
		require.True(s, s.want[e.ID], "read, but not committed")
	}
}

func (s *schedule) endAll() {
	for _, tx := range s.open {
		s.exec(tx, `commit`)
	}
	for _, tx := range s.prepared {
		s.exec(tx, fmt.Sprintf(`commit prepared '%s'`, tx.gid))
	}
	for _, tx := range append(s.open, s.prepared...) {
		s.committed(tx)
		tx.conn.Release()
	}
	s.open, s.prepared = nil, nil
	for s.publish() {
	}
	s.finish(nil)
	s.check(nil)
	read := map[string]bool{}
	for _, e := range s.wire {
		read[e.ID] = true
	}
	require.Len(s, read, len(s.want), "committed events are lost")
	for position, times := range s.taken {
		require.True(s, times == 1 || s.crashed, "position %d was read %d times without a crash", position, times)
	}
}

func (s *schedule) abandon() {
	ctx := context.WithoutCancel(s.t.Context())
	for _, tx := range s.open {
		_, _ = tx.conn.Exec(ctx, `rollback`)
		tx.conn.Release()
	}
	for _, tx := range s.prepared {
		_, _ = tx.conn.Exec(ctx, fmt.Sprintf(`rollback prepared '%s'`, tx.gid))
		tx.conn.Release()
	}
}

func (s *schedule) TB() testing.TB { return rapidTB{s.t, s.T} }

type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (t rapidTB) Helper()                   {}
func (t rapidTB) Errorf(f string, a ...any) { t.rt.Errorf(f, a...) }
func (t rapidTB) FailNow()                  { t.rt.FailNow() }

type connTx struct {
	pgx.Tx
	conn *pgxpool.Conn
}

func (c connTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return c.conn.Query(ctx, sql, args...)
}

func (c connTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return c.conn.SendBatch(ctx, b)
}
