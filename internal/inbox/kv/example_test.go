package kv_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/inbox/kv"
)

// An event that is delivered three times has one effect.
func ExampleInbox_Process() {
	ctx := context.Background()
	store := kv.NewMemory(24 * time.Hour) // in a service: kv.Bucket(ctx, js, kv.BucketConfig{Name: "inbox"})
	orders, err := kv.New(store, kv.Config{Owner: "orders-0"})
	if err != nil {
		panic(err)
	}
	for range 3 {
		outcome, err := orders.Process(ctx, "orders", "order-42-placed", func(context.Context) error {
			fmt.Println("telling the warehouse")
			return nil
		})
		fmt.Println(outcome, err)
	}
	// Output:
	// telling the warehouse
	// applied <nil>
	// duplicate <nil>
	// duplicate <nil>
}

// Retry and PoisonQueue come before the inbox in a Router's list, and so around it.
func ExampleInbox_Middleware() {
	orders, err := kv.New(kv.NewMemory(24*time.Hour), kv.Config{Owner: "orders-0"})
	if err != nil {
		panic(err)
	}
	// router.AddConsumerHandler("orders", topic, subscriber, tell).
	// 	AddMiddleware(poison, retry.Middleware, orders.Middleware("orders"))
	handler := orders.Middleware("orders")(func(msg *message.Message) ([]*message.Message, error) {
		fmt.Println("telling the warehouse of", msg.UUID)
		return nil, nil
	})
	for range 2 {
		_, err := handler(message.NewMessage("order-42-placed", nil))
		fmt.Println(err)
	}
	// Output:
	// telling the warehouse of order-42-placed
	// <nil>
	// <nil>
}
