package eventing_test

import (
	"context"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox"
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
	awaitWoken := listen(t, pool)
	require.NoError(t, pgx.BeginFunc(t.Context(), follower.node.Pool, func(tx pgx.Tx) error {
		_, err := follower.node.Outbox.Add(t.Context(), tx, event.Event{
			Source: "/test", Type: "test.pinged.v1", Topic: topic, Key: "k", Data: []byte(`{}`),
		})
		return err
	}))
	follower.node.Outbox.Committed()
	awaitWoken()
	require.Len(t, kafkatest.ReadAll(t, brokers, topic, 1), 1)
}

// A handler does not know when its transaction commits.
func TestAHandlerThatPublishesWakesTheRelay(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(context.Context, *outbox.Outbox, pgx.Tx, event.Event) error{
		"add": func(ctx context.Context, o *outbox.Outbox, tx pgx.Tx, e event.Event) error {
			_, err := o.Add(ctx, tx, e)
			return err
		},
		"queue": func(ctx context.Context, o *outbox.Outbox, tx pgx.Tx, e event.Event) error {
			b := &pgx.Batch{}
			require.NoError(t, o.Queue(ctx, b, e))
			return tx.SendBatch(ctx, b).Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
			cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_NOTIFY=true")
			topic, answers := kafkatest.Group(t), kafkatest.Group(t)+".answers"
			ensureTopic(t, cfg, topic)
			ensureTopic(t, cfg, answers)
			leader, follower := open(t, cfg), open(t, cfg)
			leader.serve(t)
			awaitLed(t, pool)
			mux := inbox.NewMux()
			inbox.Handle(mux, pingedEvent, func(ctx context.Context, tx pgx.Tx, _ event.Event, _ pinged) error {
				return add(ctx, follower.node.Outbox, tx, event.Event{
					Source: "/test", Type: "test.pinged.v1", Topic: answers, Key: "k", Data: []byte(`{}`),
				})
			})
			require.NoError(t, follower.node.Consume(eventing.Consumer{Name: "test.pings", Topic: topic, Handlers: mux}))
			follower.serve(t)
			awaitWoken := listen(t, pool)
			sendRaw(t, brokers, pingRecord(t, topic, 1))
			awaitWoken()
			require.Len(t, kafkatest.ReadAll(t, brokers, answers, 1), 1)
		})
	}
}

func listen(t *testing.T, pool *pgxpool.Pool) (awaitWoken func()) {
	t.Helper()
	acquired, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(acquired.Release)
	_, err = acquired.Exec(t.Context(), `listen outbox`)
	require.NoError(t, err)
	return func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.WaitLimit)
		defer cancel()
		_, err := acquired.Conn().WaitForNotification(ctx)
		require.NoError(t, err)
	}
}

func awaitLed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Until(t, func() bool {
		status, err := relay.ReadStatus(t.Context(), pool)
		return err == nil && status.Leading
	})
}
