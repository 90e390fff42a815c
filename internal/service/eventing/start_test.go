package eventing_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestAServiceEndsWithARelayThatRefuses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	_, err := pool.Exec(t.Context(), `
do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
	require.NoError(t, err)
	cfg := environ(t, pgtest.DSN(pool), "127.0.0.1:1")
	_, ended := open(t, cfg).run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "synchronous_commit")
		requireExitCode(t, service.ExitUsage, err)
	case <-time.After(patience):
		require.Fail(t, "the service still runs")
	}
}

func TestThePoolsOwnParametersMayBeInTheURL(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	cfg := environ(t, pgtest.DSN(pool)+"&pool_max_conns=7", "127.0.0.1:1")
	require.NoError(t, cfg.Migrate(t.Context(), io.Discard, sets...))
	b := open(t, cfg)
	_, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
	testkit.Until(t, func() bool {
		status, err := relay.ReadStatus(t.Context(), pool)
		return err == nil && status.Leading
	}, "the relay leads")
	b.stop()
	require.NoError(t, <-ended)
}
