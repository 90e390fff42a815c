package pgtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	first, second := pgtest.New(t, migrations.Inbox), pgtest.New(t, migrations.Inbox)
	_, err := first.Exec(t.Context(), `insert into inbox_key (consumer, key, version) values ('c', 'k', 1)`)
	require.NoError(t, err)

	var rows int
	require.NoError(t, second.QueryRow(t.Context(), `select count(*) from inbox_key`).Scan(&rows))
	require.Zero(t, rows)
	require.NotEqual(t, pgtest.DSN(first), pgtest.DSN(second))
}
