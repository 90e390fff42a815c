package eventing_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestAnInstanceThatFollowsWakesTheOneThatLeads(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "OUTBOX_NOTIFY=true")
	leader, follower := open(t, p.cfg), open(t, p.cfg)
	for _, b := range []*bundle{leader, follower} {
		b.serve(t)
		awaitLed(t, p.pool)
	}
	awaitWoken := listen(t, p.pool)
	follower.add(t, p.topic, "k")
	awaitWoken()
	require.Len(t, kafkatest.ReadAll(t, p.brokers, p.topic, 1), 1)
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
			p := newPlace(t, "OUTBOX_NOTIFY=true")
			answers := p.topic + ".answers"
			ensureTopic(t, p.cfg, answers)
			leader, follower := open(t, p.cfg), open(t, p.cfg)
			leader.serve(t)
			awaitLed(t, p.pool)
			follower.consume(t, eventing.Consumer{
				Name: "test.pings", Topic: p.topic,
				Handlers: pings(func(ctx context.Context, tx pgx.Tx, _ event.Event, _ pinged) error {
					return add(ctx, follower.node.Outbox, tx, event.Event{
						Source: "/test", Type: "test.pinged.v1", Topic: answers, Key: "k", Data: []byte(`{}`),
					})
				}),
			})
			follower.serve(t)
			awaitWoken := listen(t, p.pool)
			sendRaw(t, p.brokers, pingRecord(t, p.topic, 1))
			awaitWoken()
			require.Len(t, kafkatest.ReadAll(t, p.brokers, answers, 1), 1)
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
