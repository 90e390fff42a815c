package relay

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// A standby's snapshots do not list running transactions: their rows would be lost.
func TestRunRefusesAStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Durable(t)
	pool := migrated(t, server.DSN("postgres"))
	dir := columnOf[string](t, pool, `show data_directory`)[0]
	pool.Close()
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o644))
	standby := pgtest.Restart(t, server)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, standby.DSN("postgres")) }
	requireRefused(t, cfg, "standby")
}

// Storing the window must write all earlier commits, also those of synchronous_commit = off.
func TestNothingPublishedIsUndoneByAServerCrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Durable(t)
	o, pool, l := newOutbox(t), migrated(t, server.DSN("postgres")), newLedger()
	r := startRelay(t, testRelayConfig(t, pool, l))
	testkit.Until(t, r.leads)
	walwriter := int(number(t, pool, `select pid from pg_stat_activity where backend_type = 'walwriter'`))
	require.NoError(t, syscall.Kill(walwriter, syscall.SIGSTOP))
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local synchronous_commit = off`); err != nil {
			return err
		}
		_, err := o.Add(t.Context(), tx, newEvent("k"))
		return err
	})
	require.NoError(t, err)
	wire := l.AwaitDistinct(t, 1)
	require.NoError(t, server.Kill())
	<-server.Done()
	pool.Close()

	again, err := pgxpool.New(t.Context(), pgtest.Restart(t, server).DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(again.Close)
	requireAll(t, again, wire)
	commit(t, o, again, newEvent("k"))
	wire = l.AwaitDistinct(t, 2)
	requireAll(t, again, wire)
}
