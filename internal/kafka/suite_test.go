package kafka_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// TestWatermillSuite switches off these features:
//
//   - ExactlyOnceDelivery: no broker has it; the inbox gives the effect.
//   - NewSubscriberReceivesOldMessages: it means subscribers without a group.
//   - RestartServiceCommand: other tests restart the broker.
//   - ContextPreserved: a context does not travel over a network.
//
// ForceShort: 100 messages per test, not 5,000.
func TestWatermillSuite(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	withGroup := func(t *testing.T, group string) (message.Publisher, message.Subscriber) {
		publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, quiet)
		require.NoError(t, err)
		subscriber, err := stock.NewSubscriber(stock.SubscriberConfig{
			Brokers: brokers, ConsumerGroup: group, Unmarshaler: kafka.Marshaler{},
			NackResendSleep: stock.NoSleep, OverwriteSaramaConfig: singles(brokers, group).Consumer(),
		}, watermill.NopLogger{})
		require.NoError(t, err)
		t.Cleanup(func() { // some tests of the suite leave theirs open
			require.NoError(t, publisher.Close())
			require.NoError(t, subscriber.Close())
		})
		return keyed{publisher}, initializing{subscriber, brokers}
	}
	tests.TestPubSub(t, tests.Features{
		ConsumerGroups:  true,
		GuaranteedOrder: true,
		Persistent:      true,
		ForceShort:      true,
	}, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return withGroup(t, "suite-"+t.Name())
	}, withGroup)
}

// keyed adds a record key, without which there is no order to test.
type keyed struct{ *kafka.Publisher }

func (k keyed) Publish(topic string, msgs ...*message.Message) error {
	copies := make([]*message.Message, len(msgs))
	for i, msg := range msgs {
		copies[i] = msg.CopyWithContext()
		copies[i].Metadata[event.KeyMetadata] = string(msg.Payload)
	}
	return k.Publisher.Publish(topic, copies...)
}

type initializing struct {
	message.Subscriber
	brokers []string
}

func (i initializing) SubscribeInitialize(topic string) error {
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Patience)
	defer cancel()
	return kafka.EnsureTopics(ctx, kafka.Config{Brokers: i.brokers}, kafka.Topic{Name: topic, Partitions: 4})
}
