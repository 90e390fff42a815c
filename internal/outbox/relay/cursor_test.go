package relay

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestNoTransactionIsWaitedFor(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 10)
	long := begin(t, pool)
	addIn(t, o, long, "slow")
	commit(t, o, pool, newEvent("fast"))
	require.Equal(t, []int64{2}, read(t, r), "a higher position goes out while a lower one is open")
	commit(t, o, pool, newEvent("fast"))
	require.Equal(t, []int64{3}, read(t, r))
	require.NoError(t, long.Commit(t.Context()))
	require.Equal(t, []int64{1}, read(t, r), "and the lower one when it commits, however late")
	require.Empty(t, read(t, r))
}

// A savepoint's id is not the row's.
func TestEarlyIDsAndSavepoints(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 10)
	early := begin(t, pool)
	_, err := early.Exec(t.Context(), `select pg_current_xact_id()`)
	require.NoError(t, err)
	for range 5 {
		commit(t, o, pool, newEvent("k"))
		require.Len(t, read(t, r), 1)
	}
	point, err := early.Begin(t.Context())
	require.NoError(t, err)
	addIn(t, o, point, "kept")
	require.NoError(t, point.Commit(t.Context()))
	point, err = early.Begin(t.Context())
	require.NoError(t, err)
	addIn(t, o, point, "undone")
	require.NoError(t, point.Rollback(t.Context()))
	require.Empty(t, read(t, r))
	require.NoError(t, early.Commit(t.Context()))
	require.Equal(t, []int64{6}, read(t, r))
}

func TestASuccessorContinuesInTheWindow(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for range 6 {
		commit(t, o, pool, newEvent("k"))
	}
	first := newReader(t, pool, 2)
	for range 2 {
		_, err := first.step(t.Context(), func(record) {})
		require.NoError(t, err)
	}
	commit(t, o, pool, newEvent("k"))

	second := newReader(t, pool, 2)
	require.NotNil(t, second.open)
	require.Equal(t, first.open.text, second.open.text, "the window is the stored one, without the row that came later")
	require.Equal(t, []int64{3, 4, 5, 6, 7}, read(t, second), "the page that was sent last is sent again")
	require.ErrorIs(t, first.finish(t.Context()), errDeposed)
	require.Empty(t, read(t, newReader(t, pool, 2)))
}

func requireStored(t *testing.T, pool *pgxpool.Pool, r *reader) (heir *reader) {
	t.Helper()
	heir = newReader(t, pool, r.maxLimit)
	known, loaded := *r.cursor, *heir.cursor
	require.Equal(t, known.epoch+1, loaded.epoch)
	require.GreaterOrEqual(t, loaded.head, known.head, "rows may have been added since")
	known.conn, known.epoch, known.limit, known.head = loaded.conn, loaded.epoch, loaded.limit, loaded.head
	require.Equal(t, known, loaded)
	return heir
}

func TestAWindowIsClosedWithTheNextOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 2)
	commit(t, o, pool, newEvent("a"))
	_, err := r.step(t.Context(), func(record) {})
	require.NoError(t, err)
	closed := r.open.text
	commit(t, o, pool, newEvent("a"), newEvent("b"), newEvent("b"))
	w, page, more, err := r.look(t.Context())
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.True(t, more)
	_, err = r.store(t.Context(), w, nil)
	require.NoError(t, err)
	require.Equal(t, closed, r.done.text)
	require.Equal(t, int64(4), r.marks.heads[len(r.marks.heads)-1])

	commit(t, o, pool, newEvent("a"))
	heir := requireStored(t, pool, r)
	require.Equal(t, w.text, heir.open.text)
	require.Equal(t, []int64{2, 3, 4, 5}, read(t, heir))
}

func TestAWindowStaysOpenUntilThereIsANextOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 10)
	commit(t, o, pool, newEvent("a"))
	_, err := r.step(t.Context(), func(record) {})
	require.NoError(t, err)
	const version = `select xmin::text::bigint from outbox_cursor`
	stored := number(t, pool, version)
	for range 2 {
		_, err = pool.Exec(t.Context(), `select pg_current_xact_id()`) // the next snapshot differs
		require.NoError(t, err)
		found, err := r.step(t.Context(), nil)
		require.NoError(t, err)
		require.False(t, found)
	}
	require.Equal(t, stored, number(t, pool, version), "nothing was changed")
	require.NoError(t, r.finish(t.Context()))
	stored = number(t, pool, version)
	require.NoError(t, r.finish(t.Context()), "no window is open")
	require.Equal(t, stored, number(t, pool, version))
	require.Empty(t, read(t, newReader(t, pool, 10)))
}

func TestTheScanFollowsTheWindows(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 10)
	quiet := 0
	for n := int64(1); quiet < 8; n++ {
		require.Less(t, n, int64(50_000), "the server is never quiet")
		commit(t, o, pool, newEvent("k"))
		w, page, _, err := r.look(t.Context())
		require.NoError(t, err)
		require.Len(t, page, 1)
		_, err = r.store(t.Context(), w, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, len(r.marks.xids), 3+len(r.done.running))
		if len(r.done.running) == 0 && n > 2 { // another test's transaction keeps the scan where it began
			quiet++
			require.GreaterOrEqual(t, w.position, n-2, "no more than the last two windows are looked at again")
		}
		w.position, w.complete = page[0].Position, true
	}
}

func TestAStaleReaderChangesNothing(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("k"), newEvent("k"), newEvent("k"))
	opening := newReader(t, pool, 2)
	w, _, _, err := opening.look(t.Context())
	require.NoError(t, err)
	advancing := newReader(t, pool, 2)
	_, err = opening.store(t.Context(), w, nil)
	require.ErrorIs(t, err, errDeposed)

	_, err = advancing.step(t.Context(), func(record) {})
	require.NoError(t, err)
	heir := newReader(t, pool, 2)
	require.ErrorIs(t, advancing.finish(t.Context()), errDeposed)
	written := &pgx.Batch{}
	written.Queue(`insert into public.outbox_held values ('t', 'k', 1)`)
	_, err = advancing.store(t.Context(), advancing.open, written)
	require.ErrorIs(t, err, errDeposed)
	require.ErrorIs(t, advancing.guarded(t.Context(), written, nil), errDeposed)
	require.Zero(t, number(t, pool, `select count(*) from outbox_held`))
	require.Equal(t, []int64{1, 2, 3}, read(t, heir))
}

func TestAFailedWriteMovesNoCursor(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("k"))
	r := newReader(t, pool, 2)
	_, err := r.step(t.Context(), func(record) {})
	require.NoError(t, err)
	broken := &pgx.Batch{}
	broken.Queue(`select 1 / 0`)
	_, err = r.store(t.Context(), nil, broken)
	require.ErrorContains(t, err, "division by zero")
	require.NotNil(t, r.open)
	require.Equal(t, []int64{1}, read(t, newReader(t, pool, 2)))
}

func TestAServerThatWentBackIsRefused(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		`update outbox_cursor set done = '4000000000:4000000000:'`,
		`update outbox_cursor set win = '4000000000:4000000000:', win_pos = 1`,
	} {
		o, pool := newOutbox(t), newDatabase(t)
		commit(t, o, pool, newEvent("k"))
		execSQL(t, pool, sql)
		_, err := newReader(t, pool, 2).poll(t.Context())
		require.ErrorIs(t, err, errXIDsWentBack, sql)
	}
}

const megabyte = 1 << 20

const largeRowsSQL = `
insert into outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
select gen_random_uuid(), 't', '/test', 't', 'k', n, now(), convert_to(repeat('x', $1), 'UTF8')
from generate_series(1, $2) n`

func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for _, rows := range [][2]int{{10 * megabyte, 1}, {10, 1}, {megabyte, 20}} {
		execSQL(t, pool, largeRowsSQL, rows[0], rows[1])
	}
	addMany(t, o, pool, 20, 1)
	r := newReader(t, pool, 1000)
	total := 0
	for {
		w, page, more, err := r.look(t.Context())
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		bytes := 0
		for _, rec := range page {
			bytes += len(rec.Data)
		}
		require.Less(t, bytes-len(page[len(page)-1].Data), pageBytes, "only the last row passes the limit")
		_, err = r.store(t.Context(), w, nil)
		require.NoError(t, err)
		r.send(w, page, more, func(record) { total++ })
	}
	require.Equal(t, 42, total)
	require.Greater(t, r.limit, 8, "the limit rises again behind large rows")
}

func TestARowBecomesTheEventThatWasAdded(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := newEvent("k\"ü")
	e.ID, e.DataSchema, e.Version = "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "https://example.com/s", 1
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	e.Extensions = map[string]string{"traceparent": "00-\"\\", "tracestate": ""}
	plain := newEvent("l")
	plain.Time = e.Time
	added := commit(t, o, pool, e, plain)
	e.Source, plain.Source = "/test", "/test"
	plain.ID, plain.Version = added[1].ID, 1
	var got []record
	_, err := newReader(t, pool, 10).step(t.Context(), func(rec record) { got = append(got, rec) })
	require.NoError(t, err)
	require.Len(t, got, 2)
	for i, want := range []event.Event{e, plain} {
		require.Equal(t, want.Message().UUID, got[i].Message().UUID)
		require.Equal(t, want.Message().Metadata, got[i].Message().Metadata)
		require.Equal(t, want.Message().Payload, got[i].Message().Payload)
		require.Equal(t, key{want.Topic, want.Key}, got[i].key())
	}
}
