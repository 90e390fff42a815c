package kafka_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

type running struct {
	*kafka.Consumer
	lost  chan int32
	stop  context.CancelFunc
	ended chan error
	done  chan struct{}
}

func consume(t testing.TB, cfg kafka.ConsumerConfig, topic string, handle kafka.Handler) *running {
	t.Helper()
	return consumeWith(t, cfg, topic, handle, quiet)
}

func consumeWith(
	t testing.TB, cfg kafka.ConsumerConfig, topic string, handle kafka.Handler, log *slog.Logger,
) *running {
	t.Helper()
	r := &running{lost: make(chan int32, 1000), ended: make(chan error, 1), done: make(chan struct{})}
	cfg.Lost = func(_ string, p int32) { r.lost <- p }
	var err error
	r.Consumer, err = kafka.NewConsumer(cfg, handle, log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() {
		defer close(r.done)
		r.ended <- r.Run(ctx, topic)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

func (r *running) awaitPartition(t testing.TB) {
	t.Helper()
	testkit.Until(t, func() bool { return len(r.Standings()) > 0 })
}

type call struct {
	ctx   context.Context
	batch []*message.Message
	reply chan<- result
}

type result struct {
	handled int
	err     error
}

func (c call) ids() []string { return idsOf(c.batch) }

func byHand() (kafka.Handler, <-chan call) {
	calls := make(chan call)
	return func(ctx context.Context, batch []*message.Message) (int, error) {
		reply := make(chan result, 1)
		select {
		case calls <- call{ctx, batch, reply}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		select {
		case r := <-reply:
			return r.handled, r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, calls
}

func TestABatchIsWhatIsThere(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 4
	handle, calls := byHand()
	consume(t, cfg, topic, handle)

	first := receive(t, calls)
	require.Equal(t, ids, first.ids(), "one message is a batch: nothing is waited for")
	more := events(11, "a")[1:]
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more...))
	silentCalls(t, calls)
	first.reply <- result{1, nil}
	for _, want := range [][]string{idsOf(more[:4]), idsOf(more[4:8]), idsOf(more[8:])} {
		bringing(t, calls, want).reply <- result{len(want), nil}
	}
}

// bringing refuses calls until one has all wanted records: records arrive one by one.
func bringing(t testing.TB, calls <-chan call, want []string) call {
	t.Helper()
	for {
		c := receive(t, calls)
		if ids := c.ids(); len(ids) >= len(want) {
			require.Equal(t, want, ids)
			return c
		}
		require.Equal(t, want[:len(c.batch)], c.ids())
		c.reply <- result{0, errors.New("that is not all")}
	}
}

func silentCalls(t testing.TB, calls <-chan call) {
	t.Helper()
	select {
	case c := <-calls:
		require.FailNow(t, "handler called", "with %v", c.ids())
	case <-time.After(300 * time.Millisecond):
	}
}

func TestWhatIsNotHandledComesAgainInOrder(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 6)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Batch = 4
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)

	batch := bringing(t, calls, ids[:4])
	batch.batch[1].Metadata["changed"] = "by a handler"
	batch.reply <- result{1, errors.New("the second one fails")}

	batch = bringing(t, calls, ids[1:5])
	require.NotContains(t, batch.batch[0].Metadata, "changed")
	testkit.Until(t, func() bool { return committed(t, brokers, cfg.Group, topic) == 1 })
	for range 3 {
		batch.reply <- result{0, errors.New("and again")}
		batch = receive(t, calls)
		require.Equal(t, ids[1:5], batch.ids())
	}
	batch.reply <- result{2, nil}
	bringing(t, calls, ids[3:]).reply <- result{3, nil}
	silentCalls(t, calls)
	r.stop()
	require.NoError(t, receive(t, r.ended))
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
	})
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
	handle, calls := byHand()
	consumer, err := kafka.NewConsumer(cfg, handle, quiet)
	require.NoError(t, err)
	require.ErrorContains(t, consumer.Healthy(t.Context()), "not started")
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx, topic) }()

	offset := int64(0)
	for offset < 3 {
		batch := receive(t, calls)
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
		batch.reply <- result{len(batch.batch), nil}
	}
	require.NoError(t, consumer.Healthy(t.Context()))
	cancel()
	require.NoError(t, receive(t, ended))
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
		if origin, _ := event.OriginFrom(batch[0].Context()); origin.Partition == 0 {
			stuck <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		seen <- time.Now()
		return len(batch), nil
	})
	receive(t, stuck)
	var slowest time.Duration
	for range 20 {
		sent := time.Now()
		toPartition(t, brokers, topic, 1, "x")
		slowest = max(slowest, receive(t, seen).Sub(sent))
	}
	t.Logf("slowest of 20 messages beside a stuck partition: %s", slowest.Round(time.Millisecond))
}
