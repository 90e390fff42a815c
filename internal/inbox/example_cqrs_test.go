package inbox_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

type OrderPlaced struct {
	Total int `json:"total"`
}

type waker struct {
	inbox.Standalone
	handled chan<- inbox.Outcome
}

func (w waker) Handled(_ event.Event, outcome inbox.Outcome) { w.handled <- outcome }

// byType finds an event's handler by its ce_type. Events of a cqrs.EventBus need only cqrs.JSONMarshaler.
type byType struct{ cqrs.JSONMarshaler }

func (byType) NameFromMessage(msg *message.Message) string {
	return msg.Metadata[event.HeaderType]
}

// A handler of Watermill's cqrs writes in the inbox's transaction. Each handler of an EventProcessor has its own
// subscriber, so it needs its own consumer.
func ExampleTxFromContext() {
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox)
	defer drop()
	topic, logger := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil), watermill.NopLogger{}
	router := message.NewDefaultRouter(logger)
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
			return "orders", nil
		},
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return topic, nil
		},
		Marshaler: byType{cqrs.JSONMarshaler{GenerateName: func(any) string { return "com.example.order-placed.v1" }}},
	})
	if err != nil {
		panic(err)
	}

	handled := make(chan inbox.Outcome)
	orders, err := inbox.New(inbox.Config{
		Consumer: "stock.orders", Pool: pool,
		Host: waker{handled: handled},
	})
	if err != nil {
		panic(err)
	}
	handler, err := processor.AddHandler(cqrs.NewEventHandler("stock.orders",
		func(ctx context.Context, order *OrderPlaced) error {
			tx, _ := inbox.TxFromContext(ctx)
			e, _ := inbox.EventFromContext(ctx)
			var isolation string
			if err := tx.QueryRow(ctx, `show transaction_isolation`).Scan(&isolation); err != nil {
				return err
			}
			fmt.Printf("order %s over %d, %s\n", e.Key, order.Total, isolation)
			return nil
		}))
	if err != nil {
		panic(err)
	}
	handler.AddMiddleware(orders.Middleware)

	ended := make(chan error)
	go func() { ended <- router.Run(context.Background()) }()
	<-router.Running()
	for range 2 {
		if err := topic.Publish("orders", orderEvent().Message()); err != nil {
			panic(err)
		}
		fmt.Println(<-handled)
	}
	if err := router.Close(); err != nil {
		panic(err)
	}
	fmt.Println("stopped:", <-ended)
	// Output:
	// order 42 over 99, read committed
	// applied
	// duplicate
	// stopped: <nil>
}
