package pgtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
)

// Durable gives the test a server of its own, with fsync on: one to kill and restart, or one on which no other test's
// transactions are open. It is stopped when the test ends. [Restart] starts it again.
func Durable(t testing.TB) *postgres.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	folder, server, err := startServer(ctx, postgres.Config{Durable: true})
	require.NoError(t, err, "no PostgreSQL for this test")
	t.Cleanup(func() { require.NoError(t, removeServer(server, folder)) })
	return server
}

// Restart starts a server of [Durable] that was killed or stopped, under its old DSN, and stops it when the test ends.
func Restart(t testing.TB, server *postgres.Server) *postgres.Server {
	t.Helper()
	again, err := server.Restart(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stopServer(again)) })
	return again
}

// Folder is where the test may put a data directory for [On]. The directory is removed with the test.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := newFolder(places())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeFolder(folder)) })
	return dataIn(folder)
}

// On starts a server on a data directory that the test has made: a copy of that of a [Durable] one.
func On(t testing.TB, dir string) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(t.Context(), found(postgres.Config{Dir: dir, Durable: true}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stopServer(server)) })
	return server
}
