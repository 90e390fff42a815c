package eventing_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/operate"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// A start waits for its relay to make a restored database this cluster's own. A relay that refuses to work will not, so
// the start ends with it: a process that waits for ever would neither work nor say with its end what is wrong.
func TestAStartEndsWithTheRelayItWaitsFor(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	_, err := pool.Exec(t.Context(), `update public.outbox_cursor set sysid = 1`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
	require.NoError(t, err)
	requireRefusedStart(t, environ(t, pgtest.DSN(pool), "127.0.0.1:1"), "synchronous_commit")
}

// No relay cures a sequence that is behind its table, so the start does not wait for one.
func TestASequenceThatIsBehindEndsTheStart(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	_, err := pool.Exec(t.Context(), `
insert into public.outbox (event_id, event_type, source, topic, key, version, payload, occurred_at)
values (gen_random_uuid(), 't.v1', '/test', 'topic', 'k', 1, '', clock_timestamp())`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
update public.outbox_cursor set sysid = (select system_identifier from pg_control_system())`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `select setval('public.outbox_position_seq', 1, false)`)
	require.NoError(t, err)
	requireRefusedStart(t, environ(t, pgtest.DSN(pool), "127.0.0.1:1"), "sequence_behind")
}

// What pgxpool takes out of the URL for itself, the server knows nothing of: migrate and the relay leave it out, too.
func TestThePoolsOwnParametersMayBeInTheURL(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	cfg := environ(t, pgtest.DSN(pool)+"&pool_max_conns=7", "127.0.0.1:1")
	require.NoError(t, cfg.Migrate(t.Context(), io.Discard, sets...))
	b := open(t, cfg)
	_, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
	testkit.Until(t, func() bool {
		status, err := operate.ReadStatus(t.Context(), pool)
		return err == nil && status.Leading
	}, "the relay leads")
	b.stop()
	require.NoError(t, <-ended)
}

// requireRefusedStart starts a node that must end by itself, as one that another start will not help.
func requireRefusedStart(t *testing.T, cfg eventing.Config, problem string) {
	t.Helper()
	_, ended := open(t, cfg).run(eventing.Listeners{Admin: "127.0.0.1:0", API: "127.0.0.1:0"},
		func(*service.Group, net.Listener) { t.Error("started") })
	select {
	case err := <-ended:
		require.ErrorContains(t, err, problem)
		requireExitCode(t, service.ExitUsage, err)
	case <-time.After(patience):
		require.Fail(t, "the start still waits")
	}
}
