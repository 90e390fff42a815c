package outbox_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

type OrderPlaced struct {
	OrderID string `json:"order_id"`
	Total   int    `json:"total"`
}

// An event bus of Watermill's cqrs for your own structs. A new bus per transaction costs no statement.
func ExampleOutbox_Publisher() {
	ctx := context.Background()
	db, drop := pgtest.Open(migrations.Outbox)
	defer drop()
	box, err := outbox.New(outbox.Config{Source: "/shop"})
	if err != nil {
		panic(err)
	}
	busIn := func(tx pgx.Tx) (*cqrs.EventBus, error) {
		publisher, err := box.Publisher(ctx, tx)
		if err != nil {
			return nil, err
		}
		return cqrs.NewEventBusWithConfig(publisher, cqrs.EventBusConfig{
			GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "shop.orders", nil },
			OnPublish: func(params cqrs.OnEventSendParams) error {
				if placed, is := params.Event.(OrderPlaced); is {
					params.Message.Metadata.Set("ce_subject", placed.OrderID) // the key: it keeps an order's events in order
				}
				return nil
			},
			Marshaler: cqrs.JSONMarshaler{GenerateName: cqrs.StructName},
		})
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// ... insert the order ...
		bus, err := busIn(tx)
		if err != nil {
			return err
		}
		return bus.Publish(ctx, OrderPlaced{OrderID: "order-7", Total: 42})
	})
	fmt.Println("committed:", err == nil)

	var kind, key, payload string
	var version int64
	err = db.QueryRow(ctx, `select event_type, key, version, convert_from(payload, 'UTF8') from outbox`).
		Scan(&kind, &key, &version, &payload)
	if err != nil {
		panic(err)
	}
	fmt.Println(kind, key, version, payload)
	// Output:
	// committed: true
	// OrderPlaced order-7 1 {"order_id":"order-7","total":42}
}
