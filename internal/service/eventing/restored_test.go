package eventing_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// replica is one of several nodes that write to the topic.
func replica(t *testing.T, cfg eventing.Config, topic string) *bundle {
	t.Helper()
	b := openReplica(t, cfg, topic)
	b.serve(t)
	return b
}

func openReplica(t *testing.T, cfg eventing.Config, topic string) *bundle {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	group := service.NewGroup(ctx, log, patience)
	admin := service.NewAdmin(service.AdminConfig{Log: log, Draining: group.Draining(), CheckTimeout: patience})
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: "test", Config: cfg, Migrations: sets, Topics: cfg.Topics(topic), Admin: admin, Log: log,
		Source: "/test", Validate: func(cloudevent.Event) error { return nil },
	})
	require.NoError(t, err)
	return &bundle{node: node, admin: admin, group: group, stop: stop, ctx: ctx}
}

func (b *bundle) write(t *testing.T, topic, key string) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), b.node.Pool, func(tx pgx.Tx) error {
		_, err := b.node.Outbox.Add(t.Context(), tx, cloudevent.Event{
			Source: "/test", Type: "test.pinged.v1", Topic: topic, Key: key, Data: []byte(`{"n":7}`),
		})
		return err
	})
}

// bringBack does to the running processes what a restore in place does: the cursor is another one, and their
// connections end.
func bringBack(t *testing.T, pool *pgxpool.Pool, cursor string) {
	t.Helper()
	execute(t, pool, `update outbox_cursor set `+cursor)
	execute(t, pool, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
}

// Replicas that run through a restore add nothing until the one that leads has compared the database with the broker,
// and nothing after it has found a restore, until that is confirmed.
func TestNoReplicaWritesToADatabaseThatIsNotCompared(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	pool, topic := pgtest.New(t, sets...), kafkatest.Group(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_LEASE=3s", "KAFKA_PUBLISH_TIMEOUT=1s")
	ensureTopic(t, cfg, topic)
	replicas := []*bundle{replica(t, cfg, topic), replica(t, cfg, topic)}
	for _, b := range replicas {
		b.awaitReady(t)
		require.NoError(t, b.write(t, topic, "before"))
	}
	each := func(what string, holds func(error) bool) {
		t.Helper()
		for i, b := range replicas {
			var err error
			testkit.Until(t, func() bool {
				err = b.write(t, topic, "k")
				return holds(err)
			}, "%s: replica %d: %v", what, i, &err)
		}
	}
	back := swallow(cluster, kmsg.ListOffsets) // with which the comparison begins
	defer back()
	bringBack(t, pool, `compared = 'before', restored = null`)
	for i, b := range replicas {
		for range 3 * cfg.Pool.MaxConns { // each connection of the pool that is dead, and those that come after it
			err := b.write(t, topic, "lost")
			require.Error(t, err, "replica %d", i)
			require.Equal(t, failure.Transient, failure.Classify(err), "%v", err)
		}
		require.ErrorContains(t, b.write(t, topic, "lost"), "not_compared", "replica %d", i)
	}
	back()
	each("compared", func(err error) bool { return err == nil })

	bringBack(t, pool, `restored = 'found'`)
	each("found", func(err error) bool { return err != nil && failure.Classify(err) == failure.Transient })
	execute(t, pool, `update outbox_cursor set restored = null`)
	each("confirmed", func(err error) bool { return err == nil })
}
