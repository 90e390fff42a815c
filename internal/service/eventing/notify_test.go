package eventing_test

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox/operate"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// With OUTBOX_NOTIFY what an instance commits whose relay follows reaches the broker through the instance whose relay
// leads, and which does not poll to speak of. Without it the events would lie there until the test is out of patience:
// an event alone could be found by a look that the leader is just taking, four in a row could not.
func TestAnInstanceThatFollowsWakesTheOneThatLeads(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_NOTIFY=true")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	leader, follower := open(t, cfg), open(t, cfg)
	for _, b := range []*bundle{leader, follower} {
		require.NoError(t, b.node.PollHourly())
		listening, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
		defer func() {
			b.stop()
			require.NoError(t, <-ended)
		}()
		<-listening
		awaitLed(t, pool)
	}
	before, err := operate.ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	for n := range 4 {
		require.NoError(t, pgx.BeginFunc(t.Context(), follower.node.Pool, func(tx pgx.Tx) error {
			_, err := follower.node.Outbox.Add(t.Context(), tx, cloudevent.Event{
				Source: "/test", Type: "test.pinged.v1", Topic: topic, Key: "k", Data: []byte(`{}`),
			})
			return err
		}))
		follower.node.Outbox.Committed()
		require.Len(t, kafkatest.ReadAll(t, brokers, topic, n+1), n+1)
	}
	after, err := operate.ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, before.Epoch, after.Epoch, "the same one leads")
}

// awaitLed waits until a relay leads, which is the first one's.
func awaitLed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Until(t, func() bool {
		status, err := operate.ReadStatus(t.Context(), pool)
		return err == nil && status.Leading
	})
}
