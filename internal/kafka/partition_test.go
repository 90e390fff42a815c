package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafkatest"
)

// published is a fresh topic of one partition with n events of one key.
func published(t testing.TB, brokers []string, n int) (topic string, ids []string) {
	t.Helper()
	topic = kafkatest.Topic(t, brokers, 1)
	msgs := events(n, "a")
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	return topic, idsOf(msgs)
}

// committed is the offset from which the group would go on; -1 if it has committed none.
func committed(t testing.TB, brokers []string, group, topic string) int64 {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin(brokers, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	require.NoError(t, err)
	return answer.GetBlock(topic, 0).Offset
}

// silent fails if a message arrives within a moment in which one would.
func silent(t testing.TB, l *listener) {
	t.Helper()
	select {
	case msg, ok := <-l.messages:
		require.False(t, ok, "message handed out: %v", msg)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestOneMessageAtATimeByDefault(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 2)
	l := listen(t, fast(brokers, kafkatest.Group(t)), topic)

	first := receive(t, l.messages)
	require.Equal(t, ids[0], first.UUID)
	silent(t, l)
	first.Ack()
	require.Equal(t, ids[1:], read(t, l, 1))
}

func TestANackedMessageComesAgainInItsPlace(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 3)
	l := listen(t, fast(brokers, kafkatest.Group(t)), topic)

	require.Equal(t, ids[:1], read(t, l, 1))
	for range 3 {
		again := receive(t, l.messages)
		require.Equal(t, ids[1], again.UUID)
		again.Metadata["changed"] = "by a handler"
		again.Payload = nil
		again.Nack()
		_ = receive(t, afterDone(again.Context()))
	}
	again := receive(t, l.messages)
	require.Equal(t, ids[1], again.UUID)
	require.NotContains(t, again.Metadata, "changed")
	require.JSONEq(t, `{"n":2}`, string(again.Payload))
	again.Ack()
	require.Equal(t, ids[2:], read(t, l, 1))
}

func TestAWindowCommitsTheContiguousPrefixAlone(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 5)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.Window = 3
	l := listen(t, cfg, topic)

	a, b, c := receive(t, l.messages), receive(t, l.messages), receive(t, l.messages)
	require.Equal(t, ids[:3], idsOf([]*message.Message{a, b, c}))
	silent(t, l)
	c.Ack()
	b.Ack()
	silent(t, l)
	require.Negative(t, committed(t, brokers, cfg.Group, topic), "the first is not acknowledged")
	a.Ack()
	require.Equal(t, ids[3:], read(t, l, 2))
	require.NoError(t, l.Close())
	require.EqualValues(t, 5, committed(t, brokers, cfg.Group, topic))
}

func TestANackHoldsBackWhatIsNotOutYet(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 6)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.Window = 3
	l := listen(t, cfg, topic)

	a, b, c := receive(t, l.messages), receive(t, l.messages), receive(t, l.messages)
	b.Nack()
	a.Ack()
	silent(t, l) // c is still out: b would come after it
	c.Nack()
	require.Equal(t, ids[1:], read(t, l, 5), "b, c, then the rest")
}

func TestAWindowThatGrewIsSettledAsAWhole(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	msgs := events(4, "a")
	ids := idsOf(msgs)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.Window = 3
	l := listen(t, cfg, topic)

	require.NoError(t, publisher.Publish(topic, msgs[0]))
	a := receive(t, l.messages) // alone in the window, until the others arrive
	require.NoError(t, publisher.Publish(topic, msgs[1:]...))
	b, c := receive(t, l.messages), receive(t, l.messages)
	require.Equal(t, ids[:3], idsOf([]*message.Message{a, b, c}))
	a.Ack()
	silent(t, l) // b and c are out: they neither come again nor let the next one in
	require.NoError(t, b.Context().Err())
	b.Nack()
	silent(t, l)
	c.Ack()
	require.Equal(t, ids[1:], read(t, l, 3), "b, c, then the rest")
}

func TestAfterACrashTheUncommittedComesAgain(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 4)
	cfg := fast(brokers, kafkatest.Group(t))
	l := listen(t, cfg, topic)
	require.Equal(t, ids[:2], read(t, l, 2))
	left := receive(t, l.messages)
	require.Equal(t, ids[2], left.UUID)
	left.Nack() // in its backoff, or out again, when the subscriber closes
	require.NoError(t, l.Close())

	require.Equal(t, ids[2:], read(t, listen(t, cfg, topic), 2))
}

func TestCloseWaitsForTheHandlerAndCommitsItsAck(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 2)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	l := listen(t, cfg, topic)
	working := receive(t, l.messages)

	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	silent(t, l)
	require.NoError(t, working.Context().Err(), "a handler may finish")
	require.Empty(t, closed)
	working.Ack()
	require.NoError(t, receive(t, closed))
	require.Empty(t, l.busy)
	_, open := <-l.messages
	require.False(t, open)
	require.EqualValues(t, 1, committed(t, brokers, cfg.Group, topic))
	require.Equal(t, ids[1:], read(t, listen(t, cfg, topic), 1))
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 1)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.DrainTimeout = 100 * time.Millisecond
	l := listen(t, cfg, topic)
	stuck := receive(t, l.messages)
	done := afterDone(stuck.Context())
	require.NoError(t, l.Close())
	require.ErrorContains(t, receive(t, done), "partition lost")
	require.Len(t, l.busy, 1, "its handler may still be at work")
	stuck.Ack() // too late
	require.Equal(t, ids, read(t, listen(t, cfg, topic), 1))
}

func TestCancellingSubscribeEndsTheSubscription(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	subscriber, err := kafka.NewSubscriber(cfg, quiet)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	messages, err := subscriber.Subscribe(ctx, topic)
	require.NoError(t, err)
	working := receive(t, messages)
	cancel()
	require.NoError(t, working.Context().Err(), "it drains")
	working.Ack()
	ended := make(chan struct{}, 1)
	go func() {
		for range messages {
		}
		ended <- struct{}{}
	}()
	receive(t, ended)
	require.NoError(t, subscriber.Healthy(t.Context()), "that is no failure")
	require.NoError(t, subscriber.Close())
	_, err = subscriber.Subscribe(t.Context(), topic)
	require.ErrorIs(t, err, kafka.ErrClosed)
}
