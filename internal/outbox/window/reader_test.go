package window

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
)

// round publishes one window into seen and closes it. It reports whether there was one with rows.
func (r *Reader) round(ctx context.Context, seen func(Record)) (bool, error) {
	return r.roundUntil(ctx, seen, func(ctx context.Context) error { return r.Finish(ctx, nil) })
}

// roundAndNext opens the next window with the end of this one, and only closes it if there is none.
func (r *Reader) roundAndNext(ctx context.Context, seen func(Record)) (bool, error) {
	return r.roundUntil(ctx, seen, func(ctx context.Context) error {
		_, found, err := r.Next(ctx, true)
		if found || err != nil {
			return err
		}
		return r.Finish(ctx, nil)
	})
}

func (r *Reader) roundUntil(
	ctx context.Context, seen func(Record), finish func(context.Context) error,
) (bool, error) {
	p, found, err := r.Next(ctx, false)
	if !found || err != nil {
		return false, err
	}
	for {
		for _, rec := range p.Records {
			seen(rec)
		}
		if !p.More {
			return true, finish(ctx)
		}
		if err := r.Advance(ctx, p.Last(), nil); err != nil {
			return false, err
		}
		if p, err = r.Page(ctx, p.Last()); err != nil {
			return false, err
		}
	}
}

// open is the beginning of a round, which goes on from there.
func (r *Reader) open(ctx context.Context) error {
	_, _, err := r.Next(ctx, false)
	return err
}

// openOrPoll is the window that is open, else the one that follows.
func (r *Reader) openOrPoll(ctx context.Context) (*window, error) {
	if r.win != nil {
		return r.win, nil
	}
	return r.poll(ctx, r.done)
}

// read runs rounds until there is nothing new and returns the positions in the order of reading.
func read(t testing.TB, r *Reader) []int64 {
	t.Helper()
	var positions []int64
	for {
		more, err := r.round(t.Context(), func(rec Record) { positions = append(positions, rec.Position) })
		require.NoError(t, err)
		if !more {
			return positions
		}
	}
}

func TestReaderReadsCommittedRowsOnceInOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 100} {
		o, pool := newOutbox(t), newDatabase(t)
		r := newSession(t, pool, size)
		require.Empty(t, read(t, r))
		commit(t, o, pool, event("a"), event("b"), event("a"))
		commit(t, o, pool, event("b"), event("c"))
		require.Equal(t, []int64{1, 2, 3, 4, 5}, read(t, r))
		require.Empty(t, read(t, r))
		commit(t, o, pool, event("a"))
		require.Equal(t, []int64{6}, read(t, newSession(t, pool, size)), "another session goes on")
	}
}

func TestReaderWaitsForNoTransaction(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 10)
	long := begin(t, pool)
	_, err := o.Add(t.Context(), long, event("slow"))
	require.NoError(t, err)
	commit(t, o, pool, event("fast"))
	require.Equal(t, []int64{2}, read(t, r), "a higher position goes out while a lower one is open")
	commit(t, o, pool, event("fast"))
	require.Equal(t, []int64{3}, read(t, r))
	require.NoError(t, long.Commit(t.Context()))
	require.Equal(t, []int64{1}, read(t, r), "and the lower one when it commits, however late")
	require.Empty(t, read(t, r))
}

// An id taken long before the row is inserted puts the row far above what its transaction's age suggests; a savepoint's
// id is not the row's.
func TestReaderSeesEarlyTransactionsAndSavepoints(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 10)
	early := begin(t, pool)
	_, err := early.Exec(t.Context(), `select pg_current_xact_id()`)
	require.NoError(t, err)
	for range 5 {
		commit(t, o, pool, event("k"))
		require.Len(t, read(t, r), 1)
	}
	point, err := early.Begin(t.Context())
	require.NoError(t, err)
	_, err = o.Add(t.Context(), point, event("kept"))
	require.NoError(t, err)
	require.NoError(t, point.Commit(t.Context()))
	point, err = early.Begin(t.Context())
	require.NoError(t, err)
	_, err = o.Add(t.Context(), point, event("undone"))
	require.NoError(t, err)
	require.NoError(t, point.Rollback(t.Context()))
	require.Empty(t, read(t, r))
	require.NoError(t, early.Commit(t.Context()))
	require.Equal(t, []int64{6}, read(t, r))
}

func TestReaderGoesOnInsideAWindow(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for range 6 {
		commit(t, o, pool, event("k"))
	}
	first := newSession(t, pool, 2)
	w, err := first.poll(t.Context(), first.done)
	require.NoError(t, err)
	require.NoError(t, first.store(t.Context(), w))
	require.NoError(t, first.Advance(t.Context(), 2, nil))
	commit(t, o, pool, event("k"))

	second := newSession(t, pool, 2)
	require.NotNil(t, second.win)
	require.Equal(t, w.text, second.win.text, "the window is the stored one, without the row that came later")
	require.Equal(t, []int64{3, 4, 5, 6, 7}, read(t, second))
	require.ErrorIs(t, first.Advance(t.Context(), 4, nil), ErrDeposed)
	require.ErrorIs(t, first.Finish(t.Context(), nil), ErrDeposed)
	require.Empty(t, read(t, newSession(t, pool, 2)))
}

// What is stored is what the reader goes on with: above all a landmark's head is the one that was read with the window,
// before any transaction id was taken, not the newest one.
func TestTheStoredCursorIsTheReaders(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, event("k"))
	r := newSession(t, pool, 10)
	w, err := r.poll(t.Context(), r.done)
	require.NoError(t, err)
	require.NoError(t, r.store(t.Context(), w))
	commit(t, o, pool, event("k"))
	require.NoError(t, r.Finish(t.Context(), nil))
	require.Equal(t, int64(1), r.marks.heads[len(r.marks.heads)-1])
	stored, err := loadCursor(t.Context(), r.conn)
	require.NoError(t, err)
	require.Equal(t, r.cursor, stored)
}

// While events keep coming, the change that closes a window opens the next one. What it stores is what two changes
// would have stored, but for the landmark, which is as far ahead as the next one's.
func TestAWindowIsClosedWithTheNextOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 2)
	commit(t, o, pool, event("a"))
	_, found, err := r.Next(t.Context(), false)
	require.NoError(t, err)
	require.True(t, found)
	closed := r.win.text
	commit(t, o, pool, event("a"), event("b"), event("b"))
	generation := r.generation

	first, found, err := r.Next(t.Context(), true)
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, first.Records, 2)
	require.True(t, first.More)
	require.Equal(t, generation+1, r.generation, "one change")
	require.Equal(t, closed, r.done.text)
	require.Equal(t, int64(4), r.marks.heads[len(r.marks.heads)-1])
	stored, err := loadCursor(t.Context(), r.conn)
	require.NoError(t, err)
	require.Equal(t, r.cursor, stored)

	commit(t, o, pool, event("a"))
	heir := newSession(t, pool, 2)
	require.Equal(t, r.win.text, heir.win.text, "a successor goes on in the window that was opened")
	require.Equal(t, []int64{2, 3, 4, 5}, read(t, heir))

	_, err = heir.roundAndNext(t.Context(), nil)
	require.NoError(t, err, "nothing is open")
	commit(t, o, pool, event("c"))
	found, err = heir.roundAndNext(t.Context(), func(Record) {})
	require.NoError(t, err)
	require.True(t, found)
	require.Nil(t, heir.win, "nothing to open: it only closes")
	require.Empty(t, read(t, newSession(t, pool, 2)))
}

// While windows close and open by one change, the scan starts no further back than it would otherwise, and landmarks do
// not pile up.
func TestTheScanFollowsWindowsThatOpenOneAnother(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 10)
	commit(t, o, pool, event("k"))
	_, _, err := r.Next(t.Context(), false)
	require.NoError(t, err)
	quiet := 0
	for n := int64(0); quiet < 8; n++ {
		require.Less(t, n, int64(50_000), "the server is never quiet")
		commit(t, o, pool, event("k"))
		_, found, err := r.Next(t.Context(), true)
		require.NoError(t, err)
		require.True(t, found)
		require.LessOrEqual(t, len(r.marks.xids), 3+len(r.done.running))
		if len(r.done.running) == 0 { // another test's transaction holds the scan back at where it began
			quiet++
			require.GreaterOrEqual(t, r.win.pos, n-1, "no more than the last two windows are looked at again")
		}
	}
}

// A window with nothing behind it stays open: what closes it is the change that opens the next one, or Finish.
func TestAWindowStaysOpenUntilThereIsANextOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newSession(t, pool, 10)
	commit(t, o, pool, event("a"))
	_, found, err := r.Next(t.Context(), false)
	require.NoError(t, err)
	require.True(t, found)
	opened := r.cursor
	for range 2 {
		_, found, err = r.Next(t.Context(), true)
		require.NoError(t, err)
		require.False(t, found)
	}
	stored, err := loadCursor(t.Context(), r.conn)
	require.NoError(t, err)
	require.Equal(t, opened, stored, "nothing was changed")
	commit(t, o, pool, event("b"))
	first, found, err := r.Next(t.Context(), true)
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, first.Records, 1)
	require.Equal(t, opened.generation+1, r.generation)
	require.NoError(t, r.Finish(t.Context(), nil))
	require.NoError(t, r.Finish(t.Context(), nil), "nothing is open")
	require.Equal(t, opened.generation+2, r.generation)
}

// After a restore, too, the change that closes what it left is followed by what was committed since.
func TestWhatARestoreLeftIsFollowedByWhatWasCommitted(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, event("a"))
	restoreHere(t, pool)
	r := newSession(t, pool, 10)
	require.NoError(t, r.Rebase(t.Context()))
	require.NotNil(t, leftoverOf(r))
	first, found, err := r.Next(t.Context(), false)
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, first.Records, 1)
	commit(t, o, pool, event("b"))
	first, found, err = r.Next(t.Context(), true)
	require.NoError(t, err)
	require.True(t, found)
	require.Nil(t, leftoverOf(r))
	require.Len(t, first.Records, 1)
	require.Equal(t, int64(2), first.Last())
}

// Before the successor has changed anything but the epoch, the epoch alone must keep the predecessor out.
func TestAStaleReaderChangesNothing(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, event("k"))
	storing, moving := newSession(t, pool, 2), newSession(t, pool, 2)
	w, err := storing.poll(t.Context(), storing.done)
	require.NoError(t, err)
	require.ErrorIs(t, storing.store(t.Context(), w), ErrDeposed)
	restoreHere(t, pool)
	require.ErrorIs(t, storing.Rebase(t.Context()), ErrDeposed)

	w, err = moving.poll(t.Context(), moving.done)
	require.NoError(t, err)
	require.NoError(t, moving.store(t.Context(), w))
	heir := newSession(t, pool, 2)
	require.ErrorIs(t, moving.Advance(t.Context(), 1, nil), ErrDeposed)
	require.ErrorIs(t, moving.Finish(t.Context(), nil), ErrDeposed)
	commit(t, o, pool, event("k"))
	_, found, err := moving.Next(t.Context(), true)
	require.ErrorIs(t, err, ErrDeposed)
	require.False(t, found)

	require.NoError(t, heir.Rebase(t.Context()))
	last := newSession(t, pool, 2)
	require.NotNil(t, leftoverOf(last))
	require.ErrorIs(t, heir.Advance(t.Context(), 1, nil), ErrDeposed)
	require.ErrorIs(t, heir.Finish(t.Context(), nil), ErrDeposed)
	require.Equal(t, []int64{1, 2}, readLeftover(t, last, -1))
}

func TestReaderNoticesAChangeItWasNotToldOf(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, event("k"))
	r := newSession(t, pool, 2)
	w, err := r.poll(t.Context(), r.done)
	require.NoError(t, err)
	require.NoError(t, r.store(t.Context(), w))
	_, err = pool.Exec(t.Context(), `update outbox_cursor set generation = generation + 1`)
	require.NoError(t, err)
	require.ErrorIs(t, r.Finish(t.Context(), nil), ErrDiverged)
}

func TestReaderRefusesAServerThatWentBack(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, event("k"))
	_, err := pool.Exec(t.Context(), `update outbox_cursor set done = '4000000000:4000000000:'`)
	require.NoError(t, err)
	r := newSession(t, pool, 2)
	_, err = r.poll(t.Context(), r.done)
	require.ErrorIs(t, err, errWentBack)
}

func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for range 9 {
		e := event("k")
		e.Data = make([]byte, 10_000)
		commit(t, o, pool, e)
	}
	r := newSession(t, pool, 100)
	r.pages.maxBytes = 25_000
	w, err := r.poll(t.Context(), r.done)
	require.NoError(t, err)
	p, err := r.readPage(t.Context(), w, 0)
	require.NoError(t, err)
	require.Len(t, p.Records, 3, "one row more than fits, at most")
	require.True(t, p.More)
	require.Equal(t, 3, r.pages.limit)
	require.Len(t, read(t, r), 9)
}

func TestPageRebuildsTheEvent(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := event("k\"ü")
	e.ID, e.DataSchema, e.Version = "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "https://example.com/s", 1
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	e.Extensions = map[string]string{"traceparent": "00-\"\\", "tracestate": ""}
	plain := event("l")
	plain.Time = e.Time
	added := commit(t, o, pool, e, plain)
	e.Source, plain.Source = "/test", "/test"
	plain.ID, plain.Version = added[1].ID, 1
	r := newSession(t, pool, 10)
	var got []Record
	_, err := r.round(t.Context(), func(rec Record) { got = append(got, rec) })
	require.NoError(t, err)
	for i, want := range []cloudevent.Event{e, plain} {
		m := want.Message()
		require.Equal(t, m.UUID, got[i].Event.Message().UUID)
		require.Equal(t, m.Metadata, got[i].Event.Message().Metadata)
		require.Equal(t, m.Payload, got[i].Event.Message().Payload)
		require.Equal(t, Key{want.Topic, want.Key}, got[i].Key())
	}
}
