package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestABatchIsWhatIsThere(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 4
	m := join(t, cfg, topic)

	first := receive(t, m.calls)
	require.Equal(t, ids, first.ids(), "one message is a batch: nothing is waited for")
	more := events(11, "a")[1:]
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more...))
	m.requireSilent(t)
	first.ack()
	for _, want := range [][]string{idsOf(more[:4]), idsOf(more[4:8]), idsOf(more[8:])} {
		m.awaitCall(t, want).ack()
	}
}

// awaitCall refuses calls until one has all wanted records: records arrive one by one.
func (m *member) awaitCall(t testing.TB, want []string) call {
	t.Helper()
	for {
		c := receive(t, m.calls)
		if ids := c.ids(); len(ids) >= len(want) {
			require.Equal(t, want, ids)
			return c
		}
		require.Equal(t, want[:len(c.batch)], c.ids())
		c.nack(errors.New("that is not all"))
	}
}

func TestWhatIsNotHandledComesAgainInOrder(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 6)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 4
	m := join(t, cfg, topic)

	batch := m.awaitCall(t, ids[:4])
	batch.batch[1].Metadata["changed"] = "by a handler"
	batch.reply <- result{1, errors.New("the second one fails")}

	batch = m.awaitCall(t, ids[1:5])
	require.NotContains(t, batch.batch[0].Metadata, "changed")
	testkit.Until(t, func() bool { return committed(t, brokers, cfg.Group, topic) == 1 })
	for range 3 {
		batch.nack(errors.New("and again"))
		batch = receive(t, m.calls)
		require.Equal(t, ids[1:5], batch.ids())
	}
	batch.reply <- result{2, nil}
	m.awaitCall(t, ids[3:]).ack()
	m.requireSilent(t)
	m.close()
	require.EqualValues(t, 6, committed(t, brokers, cfg.Group, topic))
}

func TestABatchIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	msgs := events(6, "a")
	for i, size := range []int{100, 100, 50_000, 100, 100, 100} {
		msgs[i].Payload = make([]byte, size)
	}
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.MaxBytes = 3000
	var sizes []int
	done := make(chan struct{}, 1)
	seen := 0
	consume(t, cfg, topic, func(_ context.Context, batch []*message.Message) (int, error) {
		sum := 0
		for _, m := range batch[:len(batch)-1] {
			sum += len(m.Payload)
		}
		sizes = append(sizes, sum)
		if seen += len(batch); seen == len(msgs) {
			done <- struct{}{}
		}
		return len(batch), nil
	}, nil)
	receive(t, done)
	for _, size := range sizes {
		require.Less(t, size, cfg.MaxBytes, "but for the last message of the batch")
	}
}

func TestABatchCarriesOriginsAndTheCallersValues(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 3)
	type key struct{}
	cfg := batches(brokers, kafkatest.Group(t))
	m := newMember(t, cfg, nil, nil)
	require.ErrorContains(t, m.Healthy(t.Context()), "not started")
	m.run(t, context.WithValue(t.Context(), key{}, "value"), topic)

	offset := int64(0)
	for offset < 3 {
		batch := receive(t, m.calls)
		require.Equal(t, "value", batch.ctx.Value(key{}))
		for _, msg := range batch.batch {
			require.Equal(t, "value", msg.Context().Value(key{}))
			origin, ok := event.OriginFrom(msg.Context())
			require.True(t, ok)
			require.Equal(t, offset, origin.Offset)
			require.Equal(t, cfg.Group, origin.Group)
			require.Nil(t, origin.From, "without points")
			require.Equal(t, "ce_id", origin.Headers[0].Name)
			require.Equal(t, "a", msg.Metadata[event.KeyMetadata])
			decoded, err := event.FromMessage(msg)
			require.NoError(t, err)
			offset++
			require.Equal(t, offset, decoded.Version)
		}
		batch.ack()
	}
	require.NoError(t, m.Healthy(t.Context()))
}

func TestAStuckPartitionDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 2)
	backlog := make([]string, 5000)
	toPartition(t, brokers, topic, 0, backlog...)
	cfg := batches(brokers, kafkatest.Group(t))
	stuck, seen := make(chan struct{}, 1), make(chan time.Time, 1)
	consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		if placeOf(batch[0]).Partition == 0 {
			stuck <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		seen <- time.Now()
		return len(batch), nil
	}, nil)
	receive(t, stuck)
	var slowest time.Duration
	for range 20 {
		sent := time.Now()
		toPartition(t, brokers, topic, 1, "x")
		slowest = max(slowest, receive(t, seen).Sub(sent))
	}
	t.Logf("slowest of 20 messages beside a stuck partition: %s", slowest.Round(time.Millisecond))
}
