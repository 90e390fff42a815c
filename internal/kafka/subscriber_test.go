package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafkatest"
)

type change struct {
	partition int32
	offset    int64
}

// listener is a subscriber with its hooks on channels.
type listener struct {
	*kafka.Subscriber
	messages <-chan *message.Message
	assigned chan change
	lost     chan int32
	busy     chan int32 // lost with a message that was not settled
	stopped  chan error
}

// fast is a configuration whose timeouts fit a test, on either kind of broker.
func fast(brokers []string, group string) kafka.SubscriberConfig {
	return kafka.SubscriberConfig{GroupConfig: fastGroup(brokers, group)}
}

func fastGroup(brokers []string, group string) kafka.GroupConfig {
	return kafka.GroupConfig{
		Config:            kafka.Config{Brokers: brokers},
		Group:             group,
		SessionTimeout:    kafkatest.Patience,
		HeartbeatInterval: 50 * time.Millisecond,
		CommitInterval:    50 * time.Millisecond,
		DrainTimeout:      2 * time.Second,
		NackBackoff:       10 * time.Millisecond,
		ReconnectBackoff:  20 * time.Millisecond,
	}
}

func listen(t testing.TB, cfg kafka.SubscriberConfig, topic string) *listener {
	t.Helper()
	l := &listener{
		assigned: make(chan change, 1000), lost: make(chan int32, 1000), busy: make(chan int32, 1000),
		stopped: make(chan error, 1),
	}
	cfg.Hooks = kafka.Hooks{
		Assigned: func(_ string, p int32, offset int64) { l.assigned <- change{p, offset} },
		Lost: func(_ string, p int32, idle bool) {
			if l.lost <- p; !idle {
				l.busy <- p
			}
		},
		Stopped: func(err error) { l.stopped <- err },
	}
	var err error
	l.Subscriber, err = kafka.NewSubscriber(cfg, quiet)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	l.messages, err = l.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return l
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value, ok := <-from:
		require.True(t, ok, "channel closed")
		return value
	case <-time.After(kafkatest.Patience):
		require.FailNow(t, "nothing received")
		panic("unreachable")
	}
}

// read acknowledges n messages and returns their ids.
func read(t testing.TB, l *listener, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		msg := receive(t, l.messages)
		ids[i] = msg.UUID
		require.True(t, msg.Ack())
	}
	return ids
}

func idsOf(msgs []*message.Message) []string {
	ids := make([]string, len(msgs))
	for i, msg := range msgs {
		ids[i] = msg.UUID
	}
	return ids
}

func TestWhatWasPublishedBeforeTheGroupExistedIsReceived(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	msgs := events(10, "a")
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))

	l := listen(t, fast(brokers, kafkatest.Group(t)), topic)
	require.Equal(t, idsOf(msgs), read(t, l, 10))
	require.NoError(t, l.Healthy(t.Context()))
}

func TestAMessageCarriesItsOriginAndTheCallersValues(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	group := kafkatest.Group(t)
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, event("a", 1), event("a", 2)))

	type key struct{}
	subscriber, err := kafka.NewSubscriber(fast(brokers, group), quiet)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, subscriber.Close()) })
	messages, err := subscriber.Subscribe(context.WithValue(t.Context(), key{}, "value"), topic)
	require.NoError(t, err)

	receive(t, messages).Ack()
	msg := receive(t, messages)
	require.Equal(t, "value", msg.Context().Value(key{}))
	origin, ok := cloudevent.OriginFrom(msg.Context())
	require.True(t, ok)
	require.Equal(t, group, origin.Group)
	require.Equal(t, topic, origin.Topic)
	require.EqualValues(t, 0, origin.Partition)
	require.EqualValues(t, 1, origin.Offset)
	require.Equal(t, "a", string(origin.Key))
	require.Equal(t, cloudevent.Header{Name: "ce_id", Value: []byte("a-2")}, origin.Headers[0])
	decoded, err := cloudevent.FromMessage(msg)
	require.NoError(t, err)
	require.EqualValues(t, 2, decoded.Version)

	require.NoError(t, msg.Context().Err())
	msg.Ack()
	require.ErrorIs(t, receive(t, afterDone(msg.Context())), context.Canceled)
}

// afterDone turns the end of a context into a value.
func afterDone(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	context.AfterFunc(ctx, func() { done <- context.Cause(ctx) })
	return done
}
