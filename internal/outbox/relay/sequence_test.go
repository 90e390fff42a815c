package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func setSequence(t testing.TB, pool *pgxpool.Pool, position int64) {
	t.Helper()
	execSQL(t, pool, `select setval('outbox_position_seq', $1)`, position)
}

func undo(t *testing.T, o *outbox.Outbox, pool *pgxpool.Pool, n int) {
	t.Helper()
	tx := begin(t, pool)
	for range n {
		addIn(t, o, tx, "undone")
	}
	require.NoError(t, tx.Rollback(t.Context()))
}

// New rows fill gaps below the landmarks. The first poll must notice, even if its reader then dies.
func TestASequenceThatWasSetBackLosesNoRow(t *testing.T) {
	t.Parallel()
	for name, successor := range map[string]func(t *testing.T, pool *pgxpool.Pool, r *reader) *reader{
		"a reader leads": func(_ *testing.T, _ *pgxpool.Pool, r *reader) *reader { return r },
		"a reader starts": func(t *testing.T, pool *pgxpool.Pool, _ *reader) *reader {
			return newReader(t, pool, 2)
		},
		"a reader dies before the repair": func(t *testing.T, pool *pgxpool.Pool, r *reader) *reader {
			_, _, err := r.change(t.Context(), nil, nil, setNoMarks)
			require.NoError(t, err)
			return newReader(t, pool, 2)
		},
		"a reader dies after the poll": func(t *testing.T, pool *pgxpool.Pool, r *reader) *reader {
			_, err := r.poll(t.Context())
			require.NoError(t, err)
			return newReader(t, pool, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pool := newOutbox(t), newDatabase(t)
			r := newReader(t, pool, 2)
			addMany(t, o, pool, 3, 3) // 1 to 3
			undo(t, o, pool, 4)       // 4 to 7
			for range 3 {             // 8 to 10: their windows make landmarks after the gap
				commit(t, o, pool, newEvent("k"))
				require.NotEmpty(t, read(t, r))
			}
			slow := begin(t, pool)
			setSequence(t, pool, 3)
			addIn(t, o, slow, "slow") // 4
			commit(t, o, pool, newEvent("k"), newEvent("l"))
			r = successor(t, pool, r)
			require.Equal(t, []int64{5, 6}, read(t, r))
			require.Equal(t, int64(11), commit(t, o, pool, newEvent("k"))[0].Position, "the sequence is right")
			require.Equal(t, []int64{11}, read(t, r))
			require.NoError(t, slow.Commit(t.Context()), "a number from before the repair")
			require.Equal(t, []int64{4}, read(t, r))
			require.Empty(t, read(t, newReader(t, pool, 2)))
		})
	}
}

// The new rows may lie in a table partition that is long published.
func TestAPartitionIsKeptForASequenceThatWasSetBack(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t, outboxtest.SmallPartitions), newLedger()
	cfg := Config{
		Connect: dial(t, pool), Publisher: l, PartitionSize: 8, Retention: time.Hour, maintainEvery: time.Nanosecond,
	}
	undo(t, o, pool, 4)
	old := newLeader(t, cfg)
	testkit.Until(t, func() bool { // other tests' transactions may delay the landmarks
		addMany(t, o, pool, 5, 1)
		old.drain(t)
		return number(t, pool, `select count(*) from outbox_partition`) > 0
	})
	pgtest.Advance(t, pool, 2*time.Hour)
	setSequence(t, pool, 1)
	commit(t, o, pool, newEvent("k0")) // 2
	require.Equal(t, 1, newLeader(t, cfg).drain(t))
	wire, _ := l.Snapshot()
	requireAll(t, pool, wire)
}

// A key's order is not kept.
func TestRandomSetBacks(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	readers := newSessions(t, pool)
	keys := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := &setBacks{T: rt, t: t, o: o, pool: pool, readers: readers, keys: &keys, taken: map[int64]int{}}
		s.reader = readers.next(t, 3)
		read(t, s.reader) // of a failed case
		s.from = s.top()
		defer s.abandon()
		rt.Repeat(map[string]func(*rapid.T){
			"write": s.write, "begin": s.begin, "end": s.end, "step": s.step, "finish": s.finish, "crash": s.crash,
			"set back": s.setBack,
		})
		s.commitAll()
		for s.publish() {
		}
		s.finish(nil)
		above := columnOf[int64](t, pool, `select position from outbox where position > $1`, s.from)
		for _, position := range above {
			times := s.taken[position]
			require.True(rt, times == 1 || times > 1 && s.crashed, "position %d was read %d times", position, times)
		}
	})
}

type setBacks struct {
	*rapid.T
	t       *testing.T
	o       *outbox.Outbox
	pool    *pgxpool.Pool
	readers *sessions
	reader  *reader
	crashed bool
	open    []pgx.Tx
	from    int64
	room    int64 // numbers left before a poll cannot notice the set-back
	keys    *int
	taken   map[int64]int
}

func (s *setBacks) top() int64 {
	return number(s.t, s.pool, `select coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)`)
}

func (s *setBacks) setBack(*rapid.T) {
	if s.room > 0 {
		s.Skip("it was set back already")
	}
	head := number(s.t, s.pool, `select head from outbox_cursor`)
	if head-s.from < 3 {
		s.Skip("few rows")
	}
	s.room = rapid.Int64Range(2, head-s.from-1).Draw(s.T, "by")
	setSequence(s.t, s.pool, head-s.room)
}

// mayAdd skips the step if one more number would hide the set-back from the next poll.
func (s *setBacks) mayAdd() {
	if s.room == 1 {
		s.Skip("no room")
	}
}

func (s *setBacks) add(tx pgx.Tx) bool {
	s.room = max(0, s.room-1)
	*s.keys++
	_, err := s.o.Add(s.t.Context(), tx, newEvent(fmt.Sprintf("k%d", *s.keys)))
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		require.Contains(s, []string{"23505", "55P03"}, refused.Code)
		require.NoError(s, tx.Rollback(s.t.Context()))
		return false
	}
	require.NoError(s, err)
	return true
}

func (s *setBacks) newTx() pgx.Tx {
	tx, err := s.pool.Begin(s.t.Context())
	require.NoError(s, err)
	_, err = tx.Exec(s.t.Context(), `set local lock_timeout = '1ms'`)
	require.NoError(s, err)
	return tx
}

func (s *setBacks) endTx(tx pgx.Tx) {
	if rapid.IntRange(0, 2).Draw(s.T, "roll back") == 2 {
		require.NoError(s, tx.Rollback(s.t.Context()))
		return
	}
	require.NoError(s, tx.Commit(s.t.Context()))
}

func (s *setBacks) write(*rapid.T) {
	s.mayAdd()
	if tx := s.newTx(); s.add(tx) {
		s.endTx(tx)
	}
}

func (s *setBacks) begin(*rapid.T) {
	s.mayAdd()
	if len(s.open) == 3 {
		s.Skip("enough")
	}
	tx := s.newTx()
	_, err := tx.Exec(s.t.Context(), `select pg_current_xact_id()`)
	require.NoError(s, err)
	if rapid.Bool().Draw(s.T, "with a row") && !s.add(tx) {
		return
	}
	s.open = append(s.open, tx)
}

func (s *setBacks) end(*rapid.T) {
	s.mayAdd()
	if len(s.open) == 0 {
		s.Skip("none is open")
	}
	i := rapid.IntRange(0, len(s.open)-1).Draw(s.T, "transaction")
	tx := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	if rapid.Bool().Draw(s.T, "no row more") || s.add(tx) {
		s.endTx(tx)
	}
}

func (s *setBacks) step(*rapid.T) { s.publish() }

func (s *setBacks) publish() (found bool) {
	found, err := s.reader.step(s.t.Context(), func(r record) { s.taken[r.Position]++ })
	require.NoError(s, err)
	s.room = 0
	return found
}

func (s *setBacks) finish(*rapid.T) { require.NoError(s, s.reader.finish(s.t.Context())) }

func (s *setBacks) crash(*rapid.T) {
	s.crashed = true
	s.reader = s.readers.next(s.t, 3)
}

func (s *setBacks) commitAll() {
	for len(s.open) > 0 {
		tx := s.open[0]
		s.open = s.open[1:]
		require.NoError(s, tx.Commit(s.t.Context()))
	}
}

func (s *setBacks) abandon() {
	for _, tx := range s.open {
		_ = tx.Rollback(context.WithoutCancel(s.t.Context()))
	}
}
