package inbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// A stock Router and Subscriber with the inbox as middleware.
func ExampleInbox_Middleware() {
	pool, drop := pgtest.Open(migrations.Inbox)
	defer drop()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		panic(err)
	}
	defer broker.Close()
	publish(broker.ListenAddrs(), "orders", "order-1", "order-1", "order-2")

	settings := wkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: broker.ListenAddrs(), ConsumerGroup: "stock", OverwriteSaramaConfig: settings,
	}, watermill.NopLogger{})
	if err != nil {
		panic(err)
	}
	handled := make(chan inbox.Outcome)
	box, err := inbox.New(inbox.Config{Consumer: "stock.orders", Pool: pool, Host: waker{handled: handled}})
	if err != nil {
		panic(err)
	}
	router := message.NewDefaultRouter(watermill.NopLogger{})
	router.AddConsumerHandler("stock", "orders", subscriber, func(msg *message.Message) error {
		tx, _ := inbox.TxFromContext(msg.Context())
		var isolation string
		if err := tx.QueryRow(msg.Context(), `show transaction_isolation`).Scan(&isolation); err != nil {
			return err
		}
		fmt.Printf("%s, %s\n", msg.UUID, isolation)
		return nil
	}).AddMiddleware(kafka.Origin, box.Middleware)
	go func() { _ = router.Run(context.Background()) }()
	fmt.Println(<-handled, <-handled, <-handled)
	if err := router.Close(); err != nil {
		panic(err)
	}
	// Output:
	// order-1, read committed
	// order-2, read committed
	// applied duplicate applied
}

func publish(brokers []string, topic string, ids ...string) {
	publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
	if err != nil {
		panic(err)
	}
	for _, id := range ids {
		err := publisher.Publish(topic, event.Event{
			ID: id, Source: "/shop", Type: "com.example.order-placed.v1", Key: "order", Time: time.Now(), Data: []byte(`{}`),
		}.Message())
		if err != nil {
			panic(err)
		}
	}
	if err := publisher.Close(); err != nil {
		panic(err)
	}
}
