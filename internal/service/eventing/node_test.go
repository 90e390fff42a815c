package eventing_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

const patience = 30 * time.Second

var pingedEvent = event.Define[pinged](event.Declaration{Type: "test.pinged.v1"})

type pinged struct {
	N int `json:"n"`
}

func TestAStopLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0]))
	b.node.Serve(func(ctx context.Context, api net.Listener) error {
		<-ctx.Done()
		return api.Close()
	})
	listening, ended := b.run(service.Listeners{Admin: "127.0.0.1:0", API: "127.0.0.1:0"})
	require.NotEmpty(t, (<-listening).API)
	b.stop()
	require.NoError(t, <-ended)
	require.ErrorContains(t, b.node.Pool.Ping(context.Background()), "closed pool")
}

func TestATaskUntilTheSignalEndsWhileTheAPIStops(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0], "SHUTDOWN_TIMEOUT=5m"))
	ended := make(chan struct{})
	b.node.GoUntilSignal("sender", func(ctx context.Context) error {
		<-ctx.Done()
		close(ended)
		return nil
	})
	b.node.Serve(func(ctx context.Context, api net.Listener) error {
		<-ctx.Done()
		<-ended
		return api.Close()
	})
	listening, stopped := b.run(service.Listeners{Admin: "127.0.0.1:0", API: "127.0.0.1:0"})
	<-listening
	b.stop()
	require.NoError(t, <-stopped)
}

func TestTheSessionsAreSetUpForThePromises(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), "127.0.0.1:1",
		"DATABASE_STATEMENT_TIMEOUT=7s", "DATABASE_MAX_CONNECTIONS=5"))
	defer func() { require.NoError(t, b.node.Close()) }()
	for setting, want := range map[string]string{
		"statement_timeout": "7s", "idle_in_transaction_session_timeout": "1min",
		"default_transaction_isolation": "read committed", "application_name": "test",
	} {
		var got string
		require.NoError(t, b.node.Pool.QueryRow(t.Context(), `select current_setting($1)`, setting).Scan(&got))
		require.Equal(t, want, got, setting)
	}
	require.EqualValues(t, 5, b.node.Pool.Config().MaxConns)
	require.Equal(t, 2*time.Second, b.node.Pool.Config().PingTimeout)
}

func TestTheCheckOfTheSchemaHasADeadline(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	b := open(t, environ(t, pgtest.DSN(pool), "127.0.0.1:1"))
	defer func() { require.NoError(t, b.node.Close()) }()
	b.node.Pool.Close()
	b.node.Pool = pgtest.Bounded(t, pool)
	require.NoError(t, b.node.CheckSchema(t.Context()))
}

func next(t *testing.T, set migrations.Set, content string) migrations.Set {
	t.Helper()
	files := fstest.MapFS{"9999_next.sql": {Data: []byte(content)}}
	names, err := fs.Glob(set.FS, "*.sql")
	require.NoError(t, err)
	for _, name := range names {
		data, err := fs.ReadFile(set.FS, name)
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: data}
	}
	return migrations.Set{Name: set.Name, FS: files}
}

func TestAnOlderInstanceStartsOnANewerDatabase(t *testing.T) {
	t.Parallel()
	const allowed, breaking = "-- +goose Up\nselect 1;\n", "-- +goose Up\n-- Older binaries may not go on.\nselect 1;\n"
	migrated := func(content string) string {
		return pgtest.DSN(pgtest.New(t, append(sets, next(t, migrations.Audit, content))...))
	}
	cfg := environ(t, migrated(allowed), kafkatest.Brokers(t)[0])
	var logs bytes.Buffer
	b := openWith(t, slog.New(slog.NewTextHandler(&logs, nil)), cfg)
	b.serve(t)()
	require.Contains(t, logs.String(), "the database is newer than this build")

	cfg = environ(t, migrated(breaking), "127.0.0.1:1")
	b = open(t, cfg)
	b.mustNotStart(t)
	_, ended := b.run(service.Listeners{Admin: "127.0.0.1:0"})
	err := <-ended
	require.ErrorContains(t, err, "schema_newer: the database has audit up to migration 9999")
}

func TestADatabaseThatIsDownIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, "postgres://u:hunter2@"+testkit.ReservePort(t)+"/d", "127.0.0.1:1"))
	b.mustNotStart(t)
	_, ended := b.run(service.Listeners{Admin: "127.0.0.1:0"})
	b.stop()
	require.NoError(t, <-ended, "to be stopped while waiting is no failure")
}

func TestAPortInUseEndsTheStart(t *testing.T) {
	t.Parallel()
	taken, _ := servicetest.Trap(t)
	cfg := environ(t, pgtest.DSN(pgtest.New(t, sets...)), "127.0.0.1:1")
	for name, at := range map[string]service.Listeners{
		"admin": {Admin: taken}, "API": {Admin: "127.0.0.1:0", API: taken},
	} {
		b := open(t, cfg)
		b.mustNotStart(t)
		b.node.Serve(func(context.Context, net.Listener) error { return errors.New("served") })
		_, ended := b.run(at)
		err := <-ended
		require.ErrorContains(t, err, "open "+name+" listener")
		require.ErrorContains(t, err, "address already in use")
	}
}

func TestATopicThatExistsStaysAsItIs(t *testing.T) {
	t.Parallel()
	cfg := environ(t, "postgres://nobody@127.0.0.1:1/none", kafkatest.Brokers(t)[0])
	topic := kafkatest.Group(t)
	var out bytes.Buffer
	require.NoError(t, cfg.EnsureTopics(t.Context(), &out, "test", cfg.Topics(topic)))
	require.Equal(t, topic+": 6 partitions, kept 168h\n", out.String())

	out.Reset()
	cfg.Kafka.Partitions, cfg.Kafka.Retention = 12, 24*time.Hour
	require.NoError(t, cfg.EnsureTopics(t.Context(), &out, "test", cfg.Topics(topic)))
	require.Equal(t, topic+": 6 partitions, kept 168h; "+
		"it stays as it is, and is not given 12 partitions, kept 24h\n", out.String(),
		"what the broker has, not what is set")
}

func TestATopicThatOutlivesTheInboxIsRefused(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "INBOX_RETENTION=240h")
	topic := kafkatest.Group(t)
	require.NoError(t, kafka.EnsureTopics(t.Context(), cfg.Client("test"),
		kafka.Topic{Name: topic, Partitions: 1, Retention: 192 * time.Hour}))
	b := open(t, cfg)
	b.consume(t, eventing.Consumer{Name: "c", Topic: topic, Handlers: inbox.NewMux()})
	_, ended := b.run(service.Listeners{Admin: "127.0.0.1:0"})
	err := <-ended
	var wrong *retention.Violation
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "retention_too_short")
	requireExitCode(t, service.ExitUsage, err)
}

func requireExitCode(t *testing.T, want int, err error) {
	t.Helper()
	var coded interface{ ExitCode() int }
	require.ErrorAs(t, err, &coded)
	require.Equal(t, want, coded.ExitCode())
}
