package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/customer"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

var program servicetest.Run = customer.Service.Main

func environment(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0],
		"VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
		"ENVIRONMENT=" + strings.ToLower(rand.Text()), // consumer groups of its own, on a shared broker too
		"HTTP_ADDR=127.0.0.1:0",
		"ADMIN_ADDR=127.0.0.1:0",
		"TZ=Garbage", "LC_ALL=tr_TR", // not ours to check
	}, more...)
}

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	reads := []string{"notification.mails.v1"}
	program.Life(t, environment(t), "customer/0001_", "customer.users.v1", reads, func(s servicetest.Serving) {
		require.Equal(t, http.StatusNotFound, servicetest.Status(t, "http://"+s.API+"/nothing"))
	})
}

// migrate does not use the serving role, so only setup can notice its wrong password before the service starts.
func TestSetupFindsARoleThatCannotLogIn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	role := pool.Config().ConnConfig.Database + "_serving"
	execute := func(ctx context.Context, sql string) {
		_, err := pool.Exec(ctx, sql)
		require.NoError(t, err)
	}
	execute(t.Context(), "create role "+role)
	t.Cleanup(func() { execute(context.Background(), "drop owned by "+role+"; drop role "+role) })
	serving, err := url.Parse(pgtest.DSN(pool))
	require.NoError(t, err)
	serving.User = url.User(role)
	settings := environment(t, "DATABASE_URL="+serving.String(), "MIGRATE_DATABASE_URL="+pgtest.DSN(pool))
	code, _, stderr := program.Command(t, settings, "migrate")
	require.Zero(t, code, stderr)
	code, _, stderr = program.Command(t, settings, "setup")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "customer: log in with DATABASE_URL: ")
	require.Contains(t, stderr, "not permitted to log in")
}

func TestABrokenEnvironmentIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	addr, connected := servicetest.Trap(t)
	program.Refuses(t, []string{ // one problem per line
		"DATABASE_URL=postgres://u:hunter2@" + addr + "/customer?sslmode=maybe",
		"KAFKA_BROKERS=" + addr + ",",
		"VERIFICATION_SECRET=hunter2",
		"HTTP_ADDR=8080",
		"ADMIN_ADDR=localhost",
		"LOG_LEVEL=loud",
		"SHUTDOWN_TIMEOUT=5",
		"OUTBOX_BATCH=1e3",
		"OUTBOX_LEASE=1s", // shorter than the default KAFKA_PUBLISH_TIMEOUT: a cross check
		"KAFKA_TLS=yes",
		"ADMIN_TOKEN=hunter2 hunter2 hunter2 hunter2 hunter2",
		"TRUSTED_PROXIES=10.0.0.1",
		"INBOX_BATCHES=5",
	}, []string{
		"DATABASE_URL: is not", "KAFKA_BROKERS: entry 2 is not", "VERIFICATION_SECRET: is out of bounds",
		"HTTP_ADDR: is not", "ADMIN_ADDR: is not", "LOG_LEVEL: is not one of", "SHUTDOWN_TIMEOUT: unable to parse",
		"OUTBOX_BATCH: strconv", "OUTBOX_LEASE: ", "KAFKA_TLS: strconv", "INBOX_BATCHES: nothing reads it",
		"ADMIN_TOKEN: is not", "TRUSTED_PROXIES: entry 1 is not",
	}, "hunter2")
	program.Refuses(t, nil, []string{
		"DATABASE_URL: is required", "KAFKA_BROKERS: is required", "VERIFICATION_SECRET: is required",
	}, "hunter2")
	require.Empty(t, connected, "nothing was dialled")
}

func TestWithoutDatabaseAndBrokerTheCommandsFail(t *testing.T) {
	t.Parallel()
	closed := testkit.ReservePort(t)
	environ := environment(t, "KAFKA_BROKERS="+closed, "DATABASE_URL=postgres://u:hunter2@"+closed+"/customer")
	for _, name := range []string{"setup", "migrate", "topics", "healthcheck"} {
		code, _, stderr := program.Command(t, environ, name)
		require.Equal(t, 1, code, name)
		require.NotContains(t, stderr, "hunter2", name)
	}
}
