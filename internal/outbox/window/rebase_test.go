package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event/cloudevent"
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
func readRestored(t testing.TB, r *Reader) (positions []int64) {
	t.Helper()
	require.NotEqual(t, r.here, r.sysid)
	require.NoError(t, r.Rebase(t.Context()))
	positions = readLeftover(t, r, -1)
	require.Equal(t, r.here, r.sysid)
	return append(positions, read(t, r)...)
}

// readLeftover reads so many pages of the leftover, or all.
func readLeftover(t testing.TB, r *Reader, pages int) (positions []int64) {
	t.Helper()
	for n := 0; leftoverOf(r) != nil && n != pages; n++ {
		p, err := r.Page(t.Context(), r.win.pos)
		require.NoError(t, err)
		for _, rec := range p.Records {
			positions = append(positions, rec.Position)
		}
		if p.More {
			require.NoError(t, r.Advance(t.Context(), p.Last(), nil))
		} else {
			require.NoError(t, r.Finish(t.Context(), nil))
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
	w, err := r.poll(t.Context(), r.done)
	require.NoError(t, err)
	require.NoError(t, r.store(t.Context(), w))
	require.NoError(t, r.Advance(t.Context(), 14, nil)) // 1, 13 and 14 are out
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
	require.NoError(t, r.Rebase(t.Context()))
	require.Equal(t, []int64{4, 5}, readLeftover(t, r, 1))
	addMany(t, o, pool, 3, 3)
	restoreHere(t, pool)
	require.Equal(t, []int64{6, 7, 8, 9, 10, 11, 12}, readRestored(t, newSession(t, pool, 2)))
}

func TestRebaseRaisesALostSequence(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 7, 3)
	_, err := pool.Exec(t.Context(), `select setval('outbox_position_seq', 2)`)
	require.NoError(t, err)
	restoreHere(t, pool)
	require.Len(t, readRestored(t, newSession(t, pool, 10)), 7)
	require.Equal(t, int64(8), commit(t, o, pool, event("k"))[0].Position)
}

func TestRebaseWaitsForWriters(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	writer := begin(t, pool)
	addIn(t, o, writer, "k")
	restoreHere(t, pool)
	r := newSession(t, pool, 10)
	err := r.Rebase(t.Context())
	require.Error(t, err)
	var busy *pgconn.PgError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "55P03", busy.Code, "lock_not_available")
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
			if r.sysid != r.here { // a rebase waits for open writers
				require.NoError(rt, slow.Commit(t.Context()))
			}
			wire = append(wire, liveOn(rt, t, r, rapid.IntRange(-1, 3).Draw(rt, "leftover pages"))...)
			if leftoverOf(r) == nil && rapid.Bool().Draw(rt, "a round") {
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
func liveOn(rt *rapid.T, t *testing.T, r *Reader, pages int) (wire []entry) {
	if r.sysid != r.here {
		require.NoError(rt, r.Rebase(t.Context()))
	}
	for n := 0; leftoverOf(r) != nil && n != pages; n++ {
		p, err := r.Page(t.Context(), r.win.pos)
		require.NoError(rt, err)
		wire = appendWire(wire, p.Records)
		if p.More {
			require.NoError(rt, r.Advance(t.Context(), p.Last(), nil))
		} else {
			require.NoError(rt, r.Finish(t.Context(), nil))
		}
	}
	return wire
}

func appendWire(wire []entry, records []Record) []entry {
	for _, rec := range records {
		wire = append(wire, entryOf(rec.Event.Topic, rec.Event.Message()))
	}
	return wire
}

// roundPart reads a page or two of a window and leaves it open.
func roundPart(rt *rapid.T, t *testing.T, r *Reader, wire []entry) []entry {
	w, err := r.openOrPoll(t.Context())
	require.NoError(rt, err)
	if w == nil {
		return wire
	}
	p, err := r.readPage(t.Context(), w, w.pos)
	require.NoError(rt, err)
	if len(p.Records) == 0 {
		return wire
	}
	if r.win == nil {
		require.NoError(rt, r.store(t.Context(), w))
	}
	wire = appendWire(wire, p.Records)
	if rapid.Bool().Draw(rt, "recorded") {
		require.NoError(rt, r.Advance(t.Context(), p.Last(), nil))
	}
	return wire
}
