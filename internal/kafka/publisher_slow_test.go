package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func isUnfinished(err error) bool {
	var p interface{ Unfinished() bool }
	return errors.As(err, &p) && p.Unfinished()
}

// slowly delays each answer to a produce request.
func slowly(cluster *kfake.Cluster, pause time.Duration) {
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		cluster.SleepControl(func() { <-time.After(pause) })
		return nil, nil, false
	})
}

func TestASlowBrokerFailsNothing(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 2)
	publisher := newPublisher(t, kafka.Config{
		Brokers: brokers, PublishTimeout: 300 * time.Millisecond, RequestTimeout: kafkatest.Patience,
	})
	slowly(cluster, 100*time.Millisecond)
	msgs := events(40, "a", "b")
	calls, pending := 0, msgs
	for ; len(pending) > 0; calls++ {
		err := publisher.Publish(topic, pending...)
		if err == nil {
			break
		}
		for _, failed := range failures(t, err) {
			require.True(t, isUnfinished(failed), "%v", failed)
			require.False(t, isPermanent(failed))
			require.ErrorIs(t, failed, kafka.ErrTimeout)
		}
		pending = unsent(t, err, pending)
	}
	require.Greater(t, calls, 3)
	requireOrder(t, msgs, logOf(t, brokers, topic, len(msgs)))
}

func TestABrokerThatDoesNotAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{
		Brokers: brokers, PublishTimeout: time.Second, RequestTimeout: 200 * time.Millisecond, RetryFor: time.Second,
	})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	release := make(chan struct{})
	defer close(release)
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	err := publisher.Publish(topic, newEvent("a", 2), newEvent("a", 3))
	require.False(t, isUnfinished(failures(t, err)[0]), "%v", err)
	require.False(t, isPermanent(err))
}

// Without a new connection sarama would not ask the broker for ten seconds.
func TestABrokerThatIsBackIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	start := restartable(t)
	cluster, brokers := start()
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers, RetryFor: 100 * time.Millisecond})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	cluster.Close()
	for range 6 {
		require.Error(t, publisher.Publish(topic, newEvent("a", 2)))
	}
	start()
	began := time.Now()
	testkit.Until(t, func() bool { return publisher.Publish(topic, newEvent("a", 2)) == nil })
	require.Less(t, time.Since(began), 6*time.Second)
}

func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	slowly(cluster, 300*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	failed := failures(t, publisher.PublishContext(ctx, topic, newEvent("a", 2), newEvent("a", 3)))
	require.Len(t, failed, 2)
	var sent interface{ OutcomeUnknown() bool }
	require.ErrorAs(t, failed[0], &sent)
	require.True(t, sent.OutcomeUnknown())
	require.ErrorAs(t, failed[1], &sent)
	require.False(t, sent.OutcomeUnknown())
	require.ErrorIs(t, failed[1], context.DeadlineExceeded)
}
