package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
)

func TestColumnsThatAdvanceLeavesExist(t *testing.T) {
	t.Parallel()
	pool := New(t, migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Lease)
	rows, err := pool.Query(t.Context(), selectTimes)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Subset(t, found, eventTimes)
}
