package relay

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

// What a dump holds, restored into a real second cluster: its transaction ids have nothing to do with the stored ones.
func TestDumpAndRestoreIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize = 7
	r := startRelay(t, cfg)
	addMany(t, o, pool, 40, 5)
	l.AwaitDistinct(t, 40)
	r.stop()
	addMany(t, o, pool, 33, 5)

	elsewhere := outboxtest.Migrated(t, pgtest.Durable(t).DSN("postgres"))
	copyOutbox(t, pool, elsewhere)
	startRelay(t, testRelayConfig(t, elsewhere, l))
	l.AwaitDistinct(t, 73)
	addMany(t, o, elsewhere, 20, 5)
	wire := l.AwaitDistinct(t, 93)
	requireAll(t, elsewhere, wire)
	require.Len(t, wire, 93)
}

// copyOutbox copies the outbox's tables and the sequence's value, as a dump does: rows with their stored transaction
// ids.
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
	last := number(t, from, `select last_value from outbox_position_seq`)
	_, err = to.Exec(t.Context(), `select setval('outbox_position_seq', $1)`, last)
	require.NoError(t, err)
	_, err = to.Exec(t.Context(), `update outbox_cursor set lease_until = 'epoch'`)
	require.NoError(t, err)
}
