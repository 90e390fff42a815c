package relay

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Each test scripts the transactions that break one usual way to read an outbox, and reads them by snapshot window.

// A cursor past position 2 never reads 1.
func TestUsualWayCursorLosesRows(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	const after = `select position from outbox where position > $1 order by position`
	r := newReader(t, pool, 10)

	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 1
	commit(t, o, pool, newEvent("fast"))
	require.Equal(t, []int64{2}, columnOf[int64](t, pool, after, 0))
	require.Equal(t, []int64{2}, read(t, r))
	require.NoError(t, slow.Commit(t.Context()))

	require.Empty(t, columnOf[int64](t, pool, after, 2), "position 1 is committed and lost")
	require.Equal(t, []int64{1}, read(t, r))
}

// Waiting for all older transactions is safe, but transaction ids belong to the whole server.
func TestUsualWayXminStallsBehindAnotherDatabase(t *testing.T) {
	t.Parallel()
	o, pool, other := newOutbox(t), newDatabase(t), newDatabase(t)
	const settled = `select position from outbox where xid < pg_snapshot_xmin(pg_current_snapshot()) order by position`
	r := newReader(t, pool, 10)

	foreign := begin(t, other)
	_, err := foreign.Exec(t.Context(), `select pg_current_xact_id()`)
	require.NoError(t, err)
	commit(t, o, pool, newEvent("k"))

	require.Empty(t, columnOf[int64](t, pool, settled), "committed, and hidden while the other database's lasts")
	require.Equal(t, []int64{1}, read(t, r))
	require.NoError(t, foreign.Rollback(t.Context()))
}

// A transaction takes its id at its first write and the key's lock later.
func TestUsualWayXidOrderInverts(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	r := newReader(t, pool, 10)

	early := begin(t, pool)
	_, err := early.Exec(t.Context(), `select pg_current_xact_id()`)
	require.NoError(t, err)
	commit(t, o, pool, newEvent("k"))
	addIn(t, o, early, "k")
	require.NoError(t, early.Commit(t.Context()))

	require.Equal(t, []int64{2, 1}, columnOf[int64](t, pool, `select version from outbox order by xid, position`))
	require.Equal(t, []int64{1, 2}, read(t, r))
}

// Another relay may claim the key's next row and be faster.
func TestUsualWaySkipLockedInverts(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("k"), newEvent("k"))
	const lockFirst = `select version from outbox order by position limit 1 for update skip locked`

	slow, fast := begin(t, pool), begin(t, pool)
	first, second := columnOf[int64](t, slow, lockFirst), columnOf[int64](t, fast, lockFirst)
	require.Equal(t, []int64{1}, first)
	require.Equal(t, []int64{2}, second, "published while version 1 is still in the other relay's hands")
	require.NoError(t, fast.Commit(t.Context()))
	require.NoError(t, slow.Commit(t.Context()))

	require.Equal(t, []int64{1, 2}, read(t, newReader(t, pool, 1)))
}

const insertRawSQL = `
insert into public.outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
values (gen_random_uuid(), 't', '/test', 't', 'k', 1, now(), '{}')`

// Add would lock a key's row first.
func insertRaw(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), insertRawSQL)
	require.NoError(t, err)
}
