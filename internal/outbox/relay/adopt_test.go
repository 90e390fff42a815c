package relay

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/pgtest"
)

// shiftSQL leaves out '0', the id of rows that an adoption found published, and a new cursor, '3:3:' in every cluster.
const shiftSQL = `
create function shift(x xid8, n bigint) returns xid8 language sql return
    (case when x = '0' then 0 else x::text::bigint + n end)::text::xid8;
create function shift(s pg_snapshot, n bigint) returns pg_snapshot language sql return (
    greatest(pg_snapshot_xmin(s)::text::bigint + n, 3) || ':' ||
    greatest(pg_snapshot_xmax(s)::text::bigint + n, 3) || ':' || coalesce(
        (select string_agg((x::text::bigint + n)::text, ',' order by x) from pg_snapshot_xip(s) x), ''))::pg_snapshot`

func restoreFrom(t testing.TB, pool *pgxpool.Pool, ahead int64) {
	t.Helper()
	execSQL(t, pool, `update outbox set xid = shift(xid, $1)`, ahead)
	execSQL(t, pool, `update outbox_cursor set sysid = 1, done = shift(done, $1), win = shift(win, $1),
		mark_x = array(select shift(x, $1) from unnest(mark_x) with ordinality m (x, n) order by n)`, ahead)
}

func newRestorable(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := newDatabase(t)
	execSQL(t, pool, shiftSQL)
	return pool
}

var aheads = []int64{0, 20, 1_000_000, -100}

func requireAllPublished(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Zero(t, number(t, pool, `select count(*) from outbox o, outbox_cursor c where not `+IsPublished))
}

func TestARestoreThatLostTheSequence(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newRestorable(t)
	addMany(t, o, pool, 7, 3)
	setSequence(t, pool, 2)
	restoreFrom(t, pool, 1_000_000)
	require.Len(t, read(t, newReader(t, pool, 10)), 7)
	require.Equal(t, int64(8), commit(t, o, pool, newEvent("k"))[0].Position)
	require.Equal(t, []int64{8}, read(t, newReader(t, pool, 10)))
}

// An adoption waits for a writer, and takes longer than a statement may.
func TestAnAdoptionTakesItsTime(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newRestorable(t)
	addMany(t, o, pool, 3, 3)
	require.Len(t, read(t, newReader(t, pool, 10)), 3)
	addMany(t, o, pool, 2, 2) // 4 and 5 wait
	restoreFrom(t, pool, 1_000_000)
	writer, conn := begin(t, pool), newConn(t, pool)
	addIn(t, o, writer, "k") // 6
	_, err := conn.Exec(t.Context(), `set statement_timeout = '300ms'`)
	require.NoError(t, err)
	adopted := make(chan error, 1)
	go func() { adopted <- (&cursor{conn: conn}).adoptCluster(context.WithoutCancel(t.Context())) }()
	awaitNumber(t, pool, 1, `select count(*) from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'
		and clock_timestamp() - query_start > '350 ms'`, int64(conn.PgConn().PID()))
	require.NoError(t, writer.Commit(t.Context()))
	require.NoError(t, <-adopted)
	require.Equal(t, []int64{4, 5, 6}, read(t, takeOver(t, conn, 10)))
	requireAllPublished(t, pool)
}

type restores struct {
	*rapid.T
	t      *testing.T
	o      *outbox.Outbox
	pool   *pgxpool.Pool
	name   string
	wire   []entry
	added  int
	number int
}

func TestRandomRestores(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newRestorable(t)
	readers := newSessions(t, pool)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		read(t, readers.next(t, 2)) // of a failed case
		_, err := pool.Exec(t.Context(), `truncate outbox`)
		require.NoError(rt, err)
		s := &restores{T: rt, t: t, o: o, pool: pool, name: fmt.Sprintf("case%d", cases)}
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			s.live(readers)
			restoreFrom(t, pool, rapid.SampledFrom(aheads).Draw(rt, "ahead"))
		}
		r := readers.next(t, 2)
		for s.step(r) {
		}
		require.NoError(rt, r.finish(t.Context()))
		requireOrder(rapidTB{t, rt}, s.wire)
		require.Equal(rt, s.added, distinct(s.wire), "events are lost")
		requireAllPublished(rapidTB{t, rt}, pool)
	})
}

// live opens a transaction that gets its id before the adoption and inserts after it.
func (s *restores) live(readers *sessions) {
	slow, err := s.pool.Begin(s.t.Context())
	require.NoError(s, err)
	defer func() { _ = slow.Rollback(context.WithoutCancel(s.t.Context())) }()
	_, err = slow.Exec(s.t.Context(), `select pg_current_xact_id()`)
	require.NoError(s, err)
	s.write()
	r := readers.next(s.t, 2)
	s.steps(r)
	s.number++
	_, err = s.o.Add(s.t.Context(), slow, newEvent(fmt.Sprintf("%s-slow%d", s.name, s.number)))
	require.NoError(s, err)
	s.added++
	s.write()
	s.steps(r)
	require.NoError(s, slow.Commit(s.t.Context()))
	s.steps(r)
}

func (s *restores) write() {
	for range rapid.IntRange(0, 3).Draw(s.T, "writes") {
		events := make([]event.Event, rapid.IntRange(1, 5).Draw(s.T, "events"))
		for i := range events {
			events[i] = newEvent(fmt.Sprintf("%s-%d", s.name, i%3))
		}
		commit(s.t, s.o, s.pool, events...)
		s.added += len(events)
	}
}

func (s *restores) steps(r *reader) {
	for range rapid.IntRange(0, 4).Draw(s.T, "pages") {
		s.step(r)
	}
	if rapid.Bool().Draw(s.T, "finish") {
		require.NoError(s, r.finish(s.t.Context()))
	}
}

func (s *restores) step(r *reader) (found bool) {
	found, err := r.step(s.t.Context(), func(rec record) { s.wire = append(s.wire, entryOf(rec.Topic, rec.Message())) })
	require.NoError(s, err)
	return found
}

func TestDumpAndRestoreIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 7)
	addMany(t, o, pool, 40, 5)
	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // 41
	addMany(t, o, pool, 33, 5)
	for range 7 {
		_, err := r.step(t.Context(), func(record) {})
		require.NoError(t, err)
	}
	require.NoError(t, r.finish(t.Context()))
	require.NoError(t, slow.Commit(t.Context()))

	elsewhere := migrated(t, pgtest.Durable(t).DSN("postgres"))
	copyOutbox(t, pool, elsewhere)
	want := columnOf[int64](t, pool,
		`select position from outbox o, outbox_cursor c where not `+IsPublished+` order by position`)
	require.Contains(t, want, int64(41))
	require.Less(t, len(want), 30)
	require.Equal(t, want, read(t, newReader(t, elsewhere, 7)))
	addMany(t, o, elsewhere, 20, 5)
	require.Len(t, read(t, newReader(t, elsewhere, 7)), 20)
	requireAllPublished(t, elsewhere)
}

func copyOutbox(t testing.TB, from, to *pgxpool.Pool) {
	t.Helper()
	source, target := acquireConn(t, from).PgConn(), acquireConn(t, to).PgConn()
	_, err := to.Exec(t.Context(), `truncate outbox_cursor`)
	require.NoError(t, err)
	for _, table := range []string{"outbox", "outbox_key", "outbox_cursor", "outbox_parked", "outbox_held"} {
		var data bytes.Buffer
		_, err := source.CopyTo(t.Context(), &data, `copy (select * from `+table+`) to stdout`)
		require.NoError(t, err)
		_, err = target.CopyFrom(t.Context(), &data, `copy `+table+` from stdin`)
		require.NoError(t, err)
	}
	setSequence(t, to, number(t, from, `select last_value from outbox_position_seq`))
}
