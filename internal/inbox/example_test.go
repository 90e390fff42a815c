package inbox_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// An event delivered three times has one effect.
func ExampleInbox_Process() {
	ctx := context.Background()
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox)
	defer drop()
	orders, err := inbox.New(inbox.Config{Consumer: "orders", Pool: pool})
	if err != nil {
		panic(err)
	}
	for range 3 {
		outcome, err := orders.Process(ctx, "order-42-placed", func(ctx context.Context, tx pgx.Tx) error {
			fmt.Println("reserving stock")
			return nil // write through tx here
		})
		fmt.Println(outcome, err)
	}
	// Output:
	// reserving stock
	// applied <nil>
	// duplicate <nil>
	// duplicate <nil>
}

// A typed handler under the Watermill middleware.
func ExampleHandle() {
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox)
	defer drop()

	type orderPlaced struct {
		Total int `json:"total"`
	}
	placed := event.Define[orderPlaced](event.Declaration{Type: "com.example.order-placed.v1"})
	mux := inbox.NewMux()
	inbox.Handle(mux, placed,
		func(ctx context.Context, tx pgx.Tx, e event.Event, order orderPlaced) error {
			fmt.Printf("order %s over %d\n", e.Key, order.Total)
			return nil // write through tx here
		})
	orders, err := inbox.New(inbox.Config{Consumer: "orders", Pool: pool, Accepts: mux.Accepts})
	if err != nil {
		panic(err)
	}
	// router.AddConsumerHandler("orders", topic, subscriber, mux.HandleNoPublish).AddMiddleware(orders.Middleware)
	fmt.Println(deliver(orders, mux, orderEvent().Message()))
	// Output:
	// order 42 over 99
	// <nil>
}
