package eventing_test

import (
	"context"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestAnInstanceThatFollowsWakesTheOneThatLeads(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_NOTIFY=true")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	leader, follower := open(t, cfg), open(t, cfg)
	for _, b := range []*bundle{leader, follower} {
		listening, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
		defer func() {
			b.stop()
			require.NoError(t, <-ended)
		}()
		<-listening
		awaitLed(t, pool)
	}
	acquired, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer acquired.Release()
	listener := acquired.Conn()
	_, err = listener.Exec(t.Context(), `listen outbox`)
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), follower.node.Pool, func(tx pgx.Tx) error {
		_, err := follower.node.Outbox.Add(t.Context(), tx, event.Event{
			Source: "/test", Type: "test.pinged.v1", Topic: topic, Key: "k", Data: []byte(`{}`),
		})
		return err
	}))
	follower.node.Outbox.Committed()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.WaitLimit)
	defer cancel()
	_, err = listener.WaitForNotification(ctx)
	require.NoError(t, err)
	require.Len(t, kafkatest.ReadAll(t, brokers, topic, 1), 1)
}

func awaitLed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Until(t, func() bool {
		status, err := relay.ReadStatus(t.Context(), pool)
		return err == nil && status.Leading
	})
}
