package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestRunDrainsAndCommitsWhatTheHandlerStillDoes(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 3)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 1
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)
	working := receive(t, calls)
	r.stop()
	silentCalls(t, calls)
	require.NoError(t, working.ctx.Err(), "a handler may finish")
	require.Empty(t, r.ended)
	working.reply <- result{1, nil}
	require.NoError(t, receive(t, r.ended))
	require.EqualValues(t, 1, committed(t, brokers, cfg.Group, topic))

	cfg.DrainTimeout = 50 * time.Millisecond
	r = consume(t, cfg, topic, handle)
	require.Equal(t, ids[1:2], receive(t, calls).ids())
	require.NoError(t, r.Healthy(t.Context()))
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
	record := &record{byKey: map[string][]string{}, want: len(msgs), all: make(chan struct{}), seen: map[string]bool{}}
	handle := func(_ context.Context, batch []*message.Message) (int, error) {
		for i, msg := range batch {
			if i > 0 && len(msg.UUID)%7 == i%7 {
				return i, errors.New("in the middle")
			}
			record.add(msg)
		}
		return len(batch), nil
	}
	keeper := consume(t, cfg, topic, handle)
	keeper.awaitPartition(t)
	for round := range rounds {
		guest := consume(t, cfg, topic, handle)
		require.NoError(t, publisher.Publish(topic, msgs[round*each:(round+1)*each]...))
		guest.awaitPartition(t)
		guest.stop()
		require.NoError(t, receive(t, guest.ended))
	}
	receive(t, record.all)
	keeper.stop()
	require.NoError(t, receive(t, keeper.ended))
	requireOrder(t, msgs, record.byKey)
}

func TestALostPartitionCancelsTheBatch(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := fill(t, brokers, 40)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.DrainTimeout = 100 * time.Millisecond
	handle, calls := byHand()
	first := consume(t, cfg, topic, handle)
	working := map[int32]call{}
	for range 2 {
		c := receive(t, calls)
		working[partitionOf(t, c.batch[0])] = c
	}
	otherHandle, otherCalls := byHand()
	second := consume(t, cfg, topic, otherHandle)
	second.awaitPartition(t)
	taken := second.Standings()[0].Partition
	require.ErrorContains(t, receive(t, afterDone(working[taken].batch[0].Context())), "partition lost")
	require.NoError(t, working[1-taken].ctx.Err(), "the kept partition is not disturbed")
	require.Equal(t, working[taken].ids()[0], receive(t, otherCalls).ids()[0])
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
