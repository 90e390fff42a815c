package eventing_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/pgtest"
)

func TestAServiceEndsWithARelayThatRefuses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	execute(t, pool, `alter database `+databaseOf(pool)+` set synchronous_commit = off`)
	cfg := environ(t, pgtest.DSN(pool), "127.0.0.1:1")
	_, ended := open(t, cfg).run(service.Listeners{Admin: "127.0.0.1:0"})
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
	b.serve(t)
	awaitLed(t, pool)
}
