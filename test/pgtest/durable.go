package pgtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
)

// Durable starts a server with fsync on, which the test may kill. It ends with the test.
func Durable(t testing.TB) *postgres.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	folder, server, err := startServer(ctx, postgres.Config{Durable: true})
	require.NoError(t, err, "no PostgreSQL for this test")
	t.Cleanup(func() { require.NoError(t, removeServer(server, folder)) })
	return server
}

// Restart starts an ended server of [Durable] again, under its old DSN, until the test ends.
func Restart(t testing.TB, server *postgres.Server) *postgres.Server {
	t.Helper()
	again, err := server.Restart(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	return again
}
