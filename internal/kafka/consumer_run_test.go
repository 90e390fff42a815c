package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestRunDrainsAndCommitsWhatTheHandlerStillDoes(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 3)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 1
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	m := join(t, cfg, topic)
	working := receive(t, m.calls)
	m.stop()
	m.requireSilent(t)
	require.NoError(t, working.ctx.Err(), "a handler may finish")
	require.Empty(t, m.ended)
	working.ack()
	require.NoError(t, receive(t, m.ended))
	require.EqualValues(t, 1, committed(t, brokers, cfg.Group, topic))

	cfg.DrainTimeout = 50 * time.Millisecond
	m = join(t, cfg, topic)
	require.Equal(t, ids[1:2], receive(t, m.calls).ids())
	require.NoError(t, m.Healthy(t.Context()))
}

func TestConsumersChurn(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 6)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 20
	const rounds, each = 4, 100
	msgs := events(rounds*each, keys(30)...)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	var mu sync.Mutex
	byKey, seen := map[string][]string{}, map[string]bool{}
	handle := func(_ context.Context, batch []*message.Message) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		for i, msg := range batch {
			if i > 0 && len(msg.UUID)%7 == i%7 {
				return i, errors.New("in the middle")
			}
			key := msg.Metadata["record_key"]
			byKey[key], seen[msg.UUID] = append(byKey[key], msg.UUID), true
		}
		return len(batch), nil
	}
	keeper := consume(t, cfg, topic, handle, nil)
	keeper.awaitPartition(t)
	for round := range rounds {
		guest := consume(t, cfg, topic, handle, nil)
		require.NoError(t, publisher.Publish(topic, msgs[round*each:(round+1)*each]...))
		guest.awaitPartition(t)
		guest.close()
	}
	testkit.Until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == len(msgs)
	})
	keeper.close()
	requireOrder(t, msgs, byKey)
}

func TestALostPartitionCancelsTheBatch(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := fill(t, brokers, 40)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.DrainTimeout = 100 * time.Millisecond
	first := join(t, cfg, topic)
	working := map[int32]call{}
	for range 2 {
		c := receive(t, first.calls)
		working[c.place().Partition] = c
	}
	second := join(t, cfg, topic)
	second.awaitPartition(t)
	taken := second.Standings()[0].Partition
	<-working[taken].batch[0].Context().Done()
	require.ErrorContains(t, context.Cause(working[taken].ctx), "partition lost")
	require.NoError(t, working[1-taken].ctx.Err(), "the kept partition is not disturbed")
	require.Equal(t, working[taken].ids()[0], receive(t, second.calls).ids()[0])
	require.NoError(t, first.Healthy(t.Context()))
}

func ExampleConsumer() {
	cfg := kafka.ConsumerConfig{
		Config: kafka.Config{Brokers: []string{"localhost:9092"}},
		Group:  "prod.notification",
		Batch:  100,
	}
	handle := func(_ context.Context, batch []*message.Message) (handled int, err error) {
		for i, msg := range batch {
			if len(msg.Payload) == 0 {
				return i, errors.New("empty") // this one and those behind it come again
			}
		}
		return len(batch), nil
	}
	_, err := kafka.NewConsumer(cfg, handle, nil) // then consumer.Run(ctx, "customer.users.v1")
	fmt.Println(err)
	// Output: <nil>
}
