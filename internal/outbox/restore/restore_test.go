package restore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A database from another cluster, whose sequence has lost its value, takes no events.
func TestWritersAreKeptFromADatabaseOfAnotherCluster(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	outboxtest.CommitMany(t, o, pool, 7, 3)
	require.NoError(t, CheckWriters(t.Context(), pool))
	_, err := pool.Exec(t.Context(), `update outbox_cursor set sysid = 1`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `select setval('outbox_position_seq', 2)`)
	require.NoError(t, err)
	var refused *outbox.CheckError
	require.ErrorAs(t, CheckWriters(t.Context(), pool), &refused)
	require.True(t, refused.Has(CodeRestored))
	require.True(t, refused.Has("sequence_behind"))
	_, err = pool.Exec(t.Context(), `delete from outbox_cursor`)
	require.NoError(t, err)
	require.ErrorAs(t, CheckWriters(t.Context(), pool), &refused)
	require.True(t, refused.Has("schema"))
}
