package hello

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

// Watermill's own Router and Subscriber call the inbox as a middleware.
func TestAHandlerRunsUnderAStockRouter(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, Migrations()...), kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	settings := wkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: topic, OverwriteSaramaConfig: settings,
	}, watermill.NopLogger{})
	require.NoError(t, err)
	outcomes := make(chan inbox.Outcome, 2)
	host := &inboxtest.Host{OnOutcome: func(_ event.Event, o inbox.Outcome) { outcomes <- o }}
	box, err := inbox.New(inbox.Config{Consumer: "hello.users", Pool: pool, Host: host})
	require.NoError(t, err)
	router := message.NewDefaultRouter(watermill.NopLogger{})
	checker, err := contract.Load()
	require.NoError(t, err)
	g := &greeter{outbox: outboxtest.Checked(t, checker.Validate), word: "Welcome"}
	router.AddConsumerHandler("hello", topic, subscriber, g.welcome).AddMiddleware(kafka.Origin, box.Middleware)
	go func() { _ = router.Run(t.Context()) }()

	sender := kafkatest.NewPublisher(t, brokers)
	defer func() { require.NoError(t, sender.Close()) }()
	signUp := contracttest.Example(t, contract.UserRegistered.Declaration, 1)
	for range 2 {
		require.NoError(t, sender.Publish(topic, signUp.Message()))
	}
	require.Equal(t, inbox.Applied, <-outcomes)
	require.Equal(t, inbox.Duplicate, <-outcomes)
	require.Equal(t, "Welcome, Ada!", outboxtest.RequireAdded(t, pool, contract.HelloSaid).Text)
	require.NoError(t, router.Close())
}
