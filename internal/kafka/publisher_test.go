package kafka_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func failures(t testing.TB, err error) map[int]error {
	t.Helper()
	var failed *kafka.PublishError
	require.ErrorAs(t, err, &failed)
	return failed.FailedIndexes()
}

func unsent(t testing.TB, err error, msgs []*message.Message) []*message.Message {
	t.Helper()
	failed := failures(t, err)
	var left []*message.Message
	for i, msg := range msgs {
		if failed[i] != nil {
			left = append(left, msg)
		}
	}
	require.Len(t, left, len(failed))
	return left
}

func TestConcurrentCallsAreAllAnswered(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 4)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	msgs, all := events(200, keys(20)...), sync.WaitGroup{}
	for caller := range 20 {
		all.Go(func() {
			for i := caller; i < len(msgs); i += 20 { // those of its key
				if err := publisher.Publish(topic, msgs[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, publisher.Publish(topic), "no message")
	require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
}

func TestATooLargeRecordFailsAloneWithItsKeysTail(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers, MaxMessageBytes: 10_000})
	msgs := events(6, "a", "b") // a1 b1 a2 b2 a3 b3
	msgs[2].Payload = []byte(strings.Repeat("x", 10_000))

	failed := failures(t, publisher.Publish(topic, msgs...))
	require.Len(t, failed, 2)
	require.ErrorContains(t, failed[2], "MaxMessageBytes")
	require.True(t, isPermanent(failed[2]))
	require.ErrorIs(t, failed[4], kafka.ErrNotSent)
	require.False(t, isPermanent(failed[4]))
	require.Equal(t, sent(msgs[0], msgs[1], msgs[3], msgs[5]), logOf(t, brokers, topic, 4))
}

func TestRecordsWithoutAKeyAreAllWritten(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 3)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	for range 3 {
		require.NoError(t, publisher.Publish(topic, message.NewMessage("", []byte("x")), message.NewMessage("", nil)))
	}
	for _, record := range kafkatest.ReadAll(t, brokers, topic, 6) {
		require.Nil(t, record.Key)
		require.Empty(t, record.Headers)
	}
}

func TestTopicsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	if kafkatest.IsReal() { // the broker in process accepts any name
		err := publisher.Publish("with space", newEvent("a", 1))
		require.ErrorIs(t, err, sarama.ErrInvalidTopic)
		require.True(t, isPermanent(err))
	}
	err := publisher.Publish("no-such-topic", newEvent("a", 1), newEvent("b", 1))
	require.ErrorIs(t, err, sarama.ErrUnknownTopicOrPartition)
	require.False(t, isPermanent(err), "a topic may be created later")
	require.Len(t, failures(t, err), 2)
}

func TestCloseEndsTheCallUnderWay(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	slowly(cluster, 200*time.Millisecond)
	asked := make(chan struct{}, 1)
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil, nil, false
	})
	ended := make(chan error, 1)
	go func() { ended <- publisher.Publish(topic, events(100, "a")...) }()
	receive(t, asked)
	require.NoError(t, publisher.Close())
	err := receive(t, ended)
	require.ErrorIs(t, err, kafka.ErrClosed)
	require.ErrorContains(t, err, "its turn has not come: closed")
	require.NoError(t, publisher.Close(), "a second time")
	require.ErrorIs(t, publisher.Publish(topic, newEvent("a", 1)), kafka.ErrClosed)
}

func TestABrokerThatIsAwayIsATransientFailureWithinTheTimeout(t *testing.T) {
	t.Parallel()
	publisher := newPublisher(t, kafka.Config{Brokers: []string{"127.0.0.1:1"}, PublishTimeout: 300 * time.Millisecond})
	began := time.Now()
	err := publisher.Publish("t", newEvent("a", 1))
	require.Less(t, time.Since(began), 9*time.Second, "the default would be 10")
	require.Len(t, failures(t, err), 1)
	require.False(t, isPermanent(err))
}

func TestACallThatHasEndedDoesNotConnect(t *testing.T) {
	t.Parallel()
	broker := muteBroker(t)
	var connections atomic.Int64
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for conn, err := broker.Accept(); err == nil; conn, err = broker.Accept() {
			connections.Add(1)
			_ = conn.Close()
		}
	})
	cfg := kafka.Config{Brokers: []string{broker.Addr().String()}, RetryFor: 10 * time.Millisecond}
	require.Error(t, newPublisher(t, cfg).Publish("t", newEvent("a", 1)))
	once := connections.Swap(0)

	ended, end := context.WithCancel(t.Context())
	end()
	publisher := newPublisher(t, cfg)
	for range 10 {
		require.ErrorIs(t, publisher.PublishContext(ended, "t", newEvent("a", 1)), context.Canceled)
	}
	require.Error(t, publisher.Publish("t", newEvent("a", 1)))
	require.Equal(t, once, connections.Load())
	require.NoError(t, broker.Close())
	accepting.Wait()
}

func TestCloseWaitsForNoSilentBroker(t *testing.T) {
	t.Parallel()
	publisher := newPublisher(t, kafka.Config{
		Brokers: []string{muteBroker(t).Addr().String()}, PublishTimeout: 50 * time.Millisecond, RequestTimeout: time.Hour,
	})
	require.ErrorIs(t, publisher.Publish("t", newEvent("a", 1)), kafka.ErrTimeout)
	closed := make(chan error, 1)
	go func() { closed <- publisher.Close() }()
	require.NoError(t, receive(t, closed))
}

// muteBroker accepts connections and never answers.
func muteBroker(t testing.TB) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
