package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
)

func TestDurableSurvivesACrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Durable(t)
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `create table kept as select 1 as n`)
	require.NoError(t, err)

	require.NoError(t, server.Kill())
	<-server.Done()
	require.Error(t, server.Err())
	require.Error(t, conn.Ping(t.Context()))

	again := pgtest.Restart(t, server)
	require.Equal(t, server.DSN("postgres"), again.DSN("postgres"))
	conn, err = pgx.Connect(t.Context(), again.DSN("postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), `select n from kept`).Scan(&n))
	require.Equal(t, 1, n)
}
