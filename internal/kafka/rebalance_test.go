package kafka_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func fill(t testing.TB, brokers []string, n int) (topic string, msgs []*message.Message) {
	t.Helper()
	topic = kafkatest.Topic(t, brokers, 2)
	msgs = events(n, keys(10)...)
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	return topic, msgs
}

func TestAHandlerMayFinishDuringARebalance(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, msgs := fill(t, brokers, 40)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	first := join(t, cfg, topic)
	working := map[int32]call{}
	for range 2 { // one of each partition
		c := receive(t, first.calls)
		working[c.place().Partition] = c
	}
	require.Len(t, working, 2)

	second := join(t, cfg, topic)
	testkit.Until(t, func() bool { // neither owns the other partition: its handler still works
		owners, err := kafka.ReadOwners(t.Context(), cfg.Config, cfg.Group, topic)
		return err == nil && owners.State == kafka.Stable && len(owners.By) == 1
	})
	require.Empty(t, second.Standings(), "the partition moved under a handler's feet")
	for _, c := range working {
		require.NoError(t, c.ctx.Err())
		c.ack()
	}
	seen, handled := map[string]int{}, map[int32]int64{0: 1, 1: 1}
	var moved int32
	for lost := false; !lost; { // until it learns of the loss, the first member reads more
		select {
		case c := <-first.calls:
			seen[c.ids()[0]]++
			handled[c.place().Partition]++
			c.ack()
		case moved = <-first.lost:
			lost = true
		case <-time.After(kafkatest.Patience):
			require.FailNow(t, "no partition was lost")
		}
	}
	second.awaitPartition(t)
	require.Equal(t, moved, second.Standings()[0].Partition)
	require.Equal(t, handled[moved], committedOf(t, brokers, cfg.Group, topic, moved), "behind the last acknowledged one")

	for len(seen) < len(msgs)-2 {
		var c call
		select {
		case c = <-first.calls:
		case c = <-second.calls:
		case <-time.After(kafkatest.Patience):
			require.FailNow(t, "messages are missing")
		}
		seen[c.ids()[0]]++
		require.Equal(t, 1, seen[c.ids()[0]], "handled twice")
		c.ack()
	}
	for _, c := range working {
		require.NotContains(t, seen, c.ids()[0])
	}
}
