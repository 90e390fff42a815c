package postgres_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
)

// crowd keeps the postmaster forking.
type crowd struct {
	stop     func()
	clients  sync.WaitGroup
	served   atomic.Int64
	orphaned atomic.Int64 // backends that report a missing postmaster
}

func gather(ctx context.Context, dsn string) *crowd {
	c := &crowd{}
	ctx, c.stop = context.WithCancel(ctx)
	for range 16 {
		c.clients.Go(func() {
			for ctx.Err() == nil {
				switch err := visit(ctx, dsn); {
				case err == nil:
					c.served.Add(1)
				case strings.Contains(err.Error(), "unexpected postmaster exit"):
					c.orphaned.Add(1)
				}
			}
		})
	}
	return c
}

func visit(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // the server may be gone
	_, err = conn.Exec(ctx, `select pg_sleep(0.02)`)
	return err
}

// A missed backend may wait for ever for a lock of a killed one.
func TestKillMissesNoBackend(t *testing.T) {
	t.Parallel()
	server := startServer(t, postgres.Config{Dir: filepath.Join(testkit.Folder(t), "data")})
	c := gather(t.Context(), server.DSN("postgres"))
	for range 10 {
		require.NoError(t, server.Kill())
		var err error
		server, err = server.Restart(t.Context())
		require.NoError(t, err)
	}
	c.stop()
	c.clients.Wait()
	require.NoError(t, server.Stop(t.Context()))
	require.Positive(t, c.served.Load())
	require.Zero(t, c.orphaned.Load())
}
