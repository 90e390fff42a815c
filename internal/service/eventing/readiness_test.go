package eventing_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// Without the causes: for them each request would ask the broker.
func (b *bundle) report(t *testing.T) (code int, failing map[string]string) {
	t.Helper()
	if b.checks == nil {
		b.checks = url.Values{}
		for _, check := range b.admin.Readiness().Checks {
			b.checks.Add("only", check.Name)
		}
	}
	answer, at := httptest.NewRecorder(), "/readyz?"+b.checks.Encode()
	b.admin.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody))
	var report service.Readiness
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &report))
	failing = map[string]string{}
	for _, check := range report.Checks {
		if check.Status == service.StatusFailing {
			failing[check.Name] = check.Reason
		}
	}
	return answer.Code, failing
}

func (b *bundle) awaitReady(t *testing.T) {
	t.Helper()
	var last map[string]string
	testkit.Until(t, func() bool {
		code, failing := b.report(t)
		last = failing
		return code == http.StatusOK
	}, "never ready: %v", &last)
}

func (b *bundle) awaitFailing(t *testing.T, check, reason string) {
	t.Helper()
	var last map[string]string
	testkit.Until(t, func() bool {
		code, failing := b.report(t)
		last = failing
		return code == http.StatusServiceUnavailable && len(failing) == 1 && strings.Contains(failing[check], reason)
	}, "want %s for %q: %v", check, reason, &last)
}

func ready(t *testing.T, pool *pgxpool.Pool, brokers []string, more ...string) *bundle {
	t.Helper()
	b := open(t, environ(t, pgtest.DSN(pool), brokers[0], more...))
	b.serve(t)
	b.awaitReady(t)
	return b
}

// For SQL.
func databaseOf(pool *pgxpool.Pool) string {
	return pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

func TestAServiceIsNotReadyBeforeItWasWell(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), "127.0.0.1:1"))
	defer func() { require.NoError(t, b.node.Close()) }()
	code, failing := b.report(t)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "not reached yet", failing["database"])
	require.Equal(t, "not reached yet", failing["broker"])
}

func TestADatabaseThatTakesNoCommitIsNotReady(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	b := ready(t, pool, brokers)
	name := databaseOf(pool)

	execute(t, pool, `alter database `+name+` set default_transaction_read_only = on`)
	b.awaitFailing(t, "database", "SQLSTATE 25006")
	c := b.awaitCause(t, "dependency_down", `The database is down\.`)
	require.Contains(t, c.Details, "read-only")
	execute(t, pool, `begin read write; alter database `+name+` reset default_transaction_read_only; commit`)
	b.awaitReady(t)
	b.awaitWell(t)

	execute(t, pool, `alter database `+name+` set temp_file_limit = '8kB'`) // as on a full disk
	b.awaitFailing(t, "database", "SQLSTATE 53")
	execute(t, pool, `alter database `+name+` reset temp_file_limit`)
	b.awaitReady(t)

	for _, table := range []string{"outbox", "inbox", "dead_letter"} {
		lock, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = lock.Exec(t.Context(), `lock table `+table+` in share mode`)
		require.NoError(t, err)
		b.awaitFailing(t, "tables", "insert into "+table+": ERROR: canceling statement due to lock timeout")
		require.NoError(t, lock.Rollback(t.Context()))
		b.awaitReady(t)
	}

	held := make([]*pgxpool.Conn, b.node.Pool.Config().MaxConns)
	for i := range held {
		var err error
		held[i], err = b.node.Pool.Acquire(t.Context())
		require.NoError(t, err)
	}
	testkit.Until(t, func() bool {
		_, failing := b.report(t)
		return strings.HasPrefix(failing["tables"], "no answer within")
	}, "every connection is taken")
	for _, conn := range held {
		conn.Release()
	}
	b.awaitReady(t)
}

func TestABrokerThatAcknowledgesNothingIsNotReady(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	b := ready(t, pgtest.New(t, sets...), brokers, "KAFKA_PUBLISH_TIMEOUT=500ms", "OUTBOX_POLL=1s")
	topic := kafkatest.Group(t)
	ensureTopic(t, environ(t, pgtest.DSN(b.node.Pool), brokers[0]), topic)
	back := swallow(cluster, kmsg.Produce)
	defer back()
	b.add(t, topic, "k")
	b.awaitFailing(t, "relay", "no event moved for")
	back()
	b.awaitReady(t)
	require.NotEmpty(t, kafkatest.ReadAll(t, brokers, topic, 1))
}

func TestATopicThatIsGoneIsNotReady(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	pool := pgtest.New(t, sets...)
	b := ready(t, pool, brokers, "KAFKA_PUBLISH_TIMEOUT=500ms", "OUTBOX_POLL=1s")
	there, gone := kafkatest.Group(t), kafkatest.Group(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0])
	ensureTopic(t, cfg, there)
	b.add(t, gone, "k")
	testkit.Until(t, func() bool {
		b.add(t, there, "k")
		code, failing := b.report(t)
		return code == http.StatusServiceUnavailable && strings.Contains(failing["held events"], gone) && len(failing) == 1
	})
	ensureTopic(t, cfg, gone)
	b.awaitReady(t)
}

func swallow(cluster *kfake.Cluster, key kmsg.Key) (back func()) {
	away := make(chan struct{})
	back = sync.OnceFunc(func() { close(away) })
	cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		cluster.SleepControl(func() { <-away })
		return nil, nil, false
	})
	return back
}
