package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/pgtest"
)

// restoreHere pretends that the database came from another cluster.
func restoreHere(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox_cursor set sysid = 1`)
	require.NoError(t, err)
}

// shiftSQL is for a snapshot of a cluster that is so many transactions ahead.
const shiftSQL = `
create function shift(s pg_snapshot, n bigint) returns pg_snapshot language sql return (
    (pg_snapshot_xmin(s)::text::bigint + n) || ':' || (pg_snapshot_xmax(s)::text::bigint + n) || ':' || coalesce(
        (select string_agg((x::text::bigint + n)::text, ',' order by x) from pg_snapshot_xip(s) x), ''))::pg_snapshot`

// restoreFromAhead makes the rows above a position, and the cursor, those of a cluster that was so many transactions
// ahead of this one. What is stored means something else here then, as it does after a real restore.
func restoreFromAhead(t testing.TB, pool *pgxpool.Pool, above, ahead int64) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox set xid = (xid::text::bigint + $2)::text::xid8 where position > $1`,
		above, ahead)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `update outbox_cursor set sysid = 1, done = shift(done, $1), win = shift(win, $1),
		old_done = shift(old_done, $1), old_win = shift(old_win, $1),
		mark_x = array(select (x::text::bigint + $1)::text::xid8 from unnest(mark_x) with ordinality m (x, n) order by n)`,
		ahead)
	require.NoError(t, err)
}

// readRestored rebases and reads what the restore left, then everything new.
func readRestored(t testing.TB, r *reader) (positions []int64) {
	t.Helper()
	require.NotEqual(t, r.here, r.sysid)
	require.NoError(t, r.rebase(t.Context()))
	positions = readLeftover(t, r, -1)
	require.Equal(t, r.here, r.sysid)
	return append(positions, read(t, r)...)
}

// readLeftover reads so many pages of the leftover, or all.
func readLeftover(t testing.TB, r *reader, pages int) (positions []int64) {
	t.Helper()
	for n := 0; r.old != nil && n != pages; n++ {
		p, err := r.leftoverPage(t.Context(), r.old.pos)
		require.NoError(t, err)
		for _, rec := range p.records {
			positions = append(positions, rec.position)
		}
		if p.more {
			require.NoError(t, r.leftoverAdvance(t.Context(), p.last(), nil))
		} else {
			require.NoError(t, r.leftoverFinish(t.Context(), nil))
		}
	}
	return positions
}

func TestRebasePublishesWhatTheOldClusterHadNot(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 3)
	slow, slower := begin(t, pool), begin(t, pool)
	addIn(t, o, slow, "slow")     // 1
	addIn(t, o, slower, "slower") // 2
	addMany(t, o, pool, 10, 3)
	require.Len(t, read(t, r), 10)
	require.NoError(t, slow.Commit(t.Context()))
	addMany(t, o, pool, 5, 3) // 13 to 17
	w, err := r.poll(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.store(t.Context(), w))
	require.NoError(t, r.advance(t.Context(), 14, nil)) // 1, 13 and 14 are out
	require.NoError(t, slower.Commit(t.Context()))      // far below the head, and in no window
	addMany(t, o, pool, 2, 3)                           // nor are 18 and 19

	restoreHere(t, pool)
	require.Equal(t, []int64{2, 15, 16, 17, 18, 19}, readRestored(t, newSession(t, pool, 3)))
	addMany(t, o, pool, 4, 3)
	require.Equal(t, []int64{20, 21, 22, 23}, read(t, newSession(t, pool, 3)))
}

// A second restore in the middle of the first one's leftover: nothing of it is lost, nor what was written in between.
func TestRebaseTwice(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 3, 3)
	require.Len(t, read(t, newSession(t, pool, 2)), 3)
	addMany(t, o, pool, 6, 3)
	restoreHere(t, pool)
	r := newSession(t, pool, 2)
	require.NoError(t, r.rebase(t.Context()))
	require.Equal(t, []int64{4, 5}, readLeftover(t, r, 1))
	addMany(t, o, pool, 3, 3)
	restoreHere(t, pool)
	require.Equal(t, []int64{6, 7, 8, 9, 10, 11, 12}, readRestored(t, newSession(t, pool, 2)))
}

func TestRebaseRaisesALostSequence(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 7, 3)
	require.NoError(t, CheckWriters(t.Context(), pool))
	_, err := pool.Exec(t.Context(), `select setval('outbox_position_seq', 2)`)
	require.NoError(t, err)
	restoreHere(t, pool)
	var refused *CheckError
	require.ErrorAs(t, CheckWriters(t.Context(), pool), &refused)
	require.True(t, refused.Has("restored"))
	require.True(t, refused.Has("sequence_behind"))
	require.Len(t, readRestored(t, newSession(t, pool, 10)), 7)
	require.NoError(t, CheckWriters(t.Context(), pool))
	require.Equal(t, int64(8), commit(t, o, pool, event("k"))[0].Position)
}

func TestRebaseWaitsForWriters(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	writer := begin(t, pool)
	addIn(t, o, writer, "k")
	restoreHere(t, pool)
	r := newSession(t, pool, 10)
	err := r.rebase(t.Context())
	require.Error(t, err)
	require.True(t, isBusy(err))
	require.NoError(t, writer.Commit(t.Context()))
	require.Equal(t, []int64{1}, readRestored(t, newSession(t, pool, 10)))
}

// Databases that are restored at any time, in the middle of a window, in the middle of what an earlier restore left.
func TestReaderOverRandomRestores(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	readers := newSessions(t, pool)
	_, err := pool.Exec(t.Context(), shiftSQL)
	require.NoError(t, err)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		before := number(t, pool, `select coalesce(max(position), 0) from outbox`)
		var wire []entry
		total := 0
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			slow, err := pool.Begin(t.Context())
			require.NoError(rt, err)
			rt.Cleanup(func() { _ = slow.Rollback(context.Background()) }) // a failed case must not block the next ones
			_, err = o.Add(t.Context(), slow, event(fmt.Sprintf("case%d-slow", cases)))
			require.NoError(rt, err)
			total++
			for range rapid.IntRange(0, 4).Draw(rt, "writes") {
				events := make([]cloudevent.Event, rapid.IntRange(1, 6).Draw(rt, "events"))
				for i := range events {
					events[i] = event(fmt.Sprintf("case%d-%d", cases, i%3))
				}
				commit(t, o, pool, events...)
				total += len(events)
			}
			r := readers.next(t, 2)
			if r.sysid != r.here { // a rebase waits for whoever has written
				require.NoError(rt, slow.Commit(t.Context()))
			}
			wire = append(wire, liveOn(rt, t, r, rapid.IntRange(-1, 3).Draw(rt, "leftover pages"))...)
			if r.old == nil && rapid.Bool().Draw(rt, "a round") {
				wire = roundPart(rt, t, r, wire)
			}
			if err := slow.Commit(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
				require.NoError(rt, err)
			}
			restoreFromAhead(t, pool, before, rapid.SampledFrom([]int64{0, 20, 1_000_000}).Draw(rt, "ahead"))
		}
		r := readers.next(t, 2)
		wire = append(wire, liveOn(rt, t, r, -1)...)
		require.Empty(rt, read(t, r))
		requireOrder(rapidTB{t, rt}, wire)
		require.Equal(rt, total, distinct(wire), "events are lost")
	})
}

// liveOn rebases if need be and reads so many pages of the leftover, or all.
func liveOn(rt *rapid.T, t *testing.T, r *reader, pages int) (wire []entry) {
	if r.sysid != r.here {
		require.NoError(rt, r.rebase(t.Context()))
	}
	for n := 0; r.old != nil && n != pages; n++ {
		p, err := r.leftoverPage(t.Context(), r.old.pos)
		require.NoError(rt, err)
		wire = appendWire(wire, p.records)
		if p.more {
			require.NoError(rt, r.leftoverAdvance(t.Context(), p.last(), nil))
		} else {
			require.NoError(rt, r.leftoverFinish(t.Context(), nil))
		}
	}
	return wire
}

func appendWire(wire []entry, records []record) []entry {
	for _, rec := range records {
		wire = append(wire, entryOf(rec.topic, rec.event.Message()))
	}
	return wire
}

// roundPart reads a page or two of a window and leaves it open.
func roundPart(rt *rapid.T, t *testing.T, r *reader, wire []entry) []entry {
	w, err := r.poll(t.Context())
	require.NoError(rt, err)
	if w == nil {
		return wire
	}
	p, err := r.page(t.Context(), w, w.pos)
	require.NoError(rt, err)
	if len(p.records) == 0 {
		return wire
	}
	require.NoError(rt, r.store(t.Context(), w))
	wire = appendWire(wire, p.records)
	if rapid.Bool().Draw(rt, "recorded") {
		require.NoError(rt, r.advance(t.Context(), p.last(), nil))
	}
	return wire
}

// What a dump holds, restored into a real second cluster: its transaction ids have nothing to do with the stored ones.
func TestDumpAndRestoreIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize = 7
	r := startRelay(t, cfg)
	addMany(t, o, pool, 40, 5)
	l.awaitDistinct(t, 40)
	r.stop()
	addMany(t, o, pool, 33, 5)

	elsewhere := migrated(t, pgtest.Durable(t).DSN("postgres"))
	restore(t, pool, elsewhere)
	startRelay(t, testRelayConfig(t, elsewhere, l))
	l.awaitDistinct(t, 73)
	addMany(t, o, elsewhere, 20, 5)
	wire := l.awaitDistinct(t, 93)
	requireAll(t, elsewhere, wire)
	require.Len(t, wire, 93)
}

// restore copies the outbox's tables and the sequence's value, as a dump does: rows with their stored transaction ids.
func restore(t testing.TB, from, to *pgxpool.Pool) {
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
	last := number(t, from, `select last_value from outbox_position_seq`)
	_, err = to.Exec(t.Context(), `select setval('outbox_position_seq', $1)`, last)
	require.NoError(t, err)
	_, err = to.Exec(t.Context(), `update outbox_cursor set lease_until = 'epoch'`)
	require.NoError(t, err)
}
