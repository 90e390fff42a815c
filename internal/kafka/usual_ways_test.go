package kafka_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// These tests show why the package exists; see docs/adr/0011-how-records-travel-to-and-from-kafka.md. If one fails, a
// part of the package may be superfluous.

// TestUsualWaySaramaSendsPastAFailedBatch: a caller that repeats the refused batch inverts the order.
func TestUsualWaySaramaSendsPastAFailedBatch(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	producer := rawProducer(t, brokers, func(cfg *sarama.Config) {
		cfg.Producer.MaxMessageBytes = 6000 // ten messages and more
		cfg.Producer.Flush.Messages, cfg.Producer.Flush.MaxMessages = 10, 10
	})
	batches := 0
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.PolicyViolation,
		When: func(kmsg.Request) bool { batches++; return batches == 2 },
	})
	msgs := events(100, "a")
	records := make([]*sarama.ProducerMessage, len(msgs))
	for i, msg := range msgs {
		records[i], _ = kafka.Marshaler{}.Marshal(topic, msg)
	}
	var failed sarama.ProducerErrors
	require.ErrorAs(t, producer.SendMessages(records), &failed)

	written := logOf(t, brokers, topic, len(msgs)-len(failed))["a"]
	require.Len(t, written, len(msgs)-10, "a batch is missing")
	require.Contains(t, written, "a-100", "and the last one is on the log")
}

func stockSubscriber(t *testing.T, cfg kafka.ConsumerConfig, topic string) <-chan *message.Message {
	t.Helper()
	subscriber, err := stock.NewSubscriber(stock.SubscriberConfig{
		Brokers: cfg.Brokers, ConsumerGroup: cfg.Group, Unmarshaler: kafka.Marshaler{},
		NackResendSleep: 10 * time.Millisecond, ReconnectRetrySleep: 50 * time.Millisecond,
		OverwriteSaramaConfig: cfg.Consumer(),
	}, watermill.NopLogger{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, subscriber.Close()) })
	messages, err := subscriber.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return messages
}

// TestUsualWayANackLoopOutlivesItsPartition: the stock subscriber repeats a nacked message although another member owns
// the partition.
func TestUsualWayANackLoopOutlivesItsPartition(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic, _ := published(t, brokers, 1)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.SessionTimeout = 6 * time.Second // how long the first member's place is reserved
	first := stockSubscriber(t, cfg, topic)
	var nacks atomic.Int64
	nacked := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for msg := range first {
			nacks.Add(1)
			msg.Nack()
			select {
			case nacked <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { <-done })
	receive(t, nacked)

	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID, Count: 1})
	msg := receive(t, stockSubscriber(t, cfg, topic))
	before := nacks.Load()
	testkit.Until(t, func() bool { return nacks.Load() > before+20 },
		"two handlers have one message")
	msg.Ack()
}

func TestUsualWayALostPartitionCancelsNoHandler(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic, ids := published(t, brokers, 1)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.SessionTimeout = 6 * time.Second
	working := receive(t, stockSubscriber(t, cfg, topic))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID, Count: 1})
	again := receive(t, stockSubscriber(t, cfg, topic))
	require.Equal(t, ids[0], again.UUID)
	require.NoError(t, working.Context().Err(), "it works on")
	working.Ack()
	again.Ack()
}

func stockPublisher(t *testing.T, cfg kafka.Config) *stock.Publisher {
	t.Helper()
	publisher, err := stock.NewPublisher(stock.PublisherConfig{
		Brokers: cfg.Brokers, Marshaler: kafka.Marshaler{}, OverwriteSaramaConfig: cfg.Producer(),
	}, watermill.NopLogger{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	return publisher
}

// TestUsualWayABrokerThatIsBackIsNotAsked: after a few failures sarama's producer refuses its partition for ten
// seconds.
func TestUsualWayABrokerThatIsBackIsNotAsked(t *testing.T) {
	t.Parallel()
	start := restartable(t)
	cluster, brokers := start()
	topic := kafkatest.Topic(t, brokers, 1)
	cfg := kafka.Config{Brokers: brokers, RetryFor: 500 * time.Millisecond}
	publisher := stockPublisher(t, cfg)
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	cluster.Close()
	testkit.Until(t, func() bool {
		err := publisher.Publish(topic, newEvent("a", 2))
		return err != nil && strings.Contains(err.Error(), "circuit breaker is open")
	})
	start()
	require.NoError(t, newPublisher(t, cfg).Publish(topic, newEvent("b", 1)), "it is back")
	require.ErrorContains(t, publisher.Publish(topic, newEvent("a", 2)), "circuit breaker is open")
}
