package relay_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// The relay publishes to any Watermill publisher, here one in memory.
func ExampleRelay() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	db, drop := pgtest.Open(migrations.Outbox)
	defer drop()
	broker := gochannel.NewGoChannel(
		gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{}) // needed for order
	messages, err := broker.Subscribe(ctx, "shop.orders.v1")
	if err != nil {
		panic(err)
	}
	box, err := outbox.New(outbox.Config{Source: "/shop"})
	if err != nil {
		panic(err)
	}
	connect := func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, pgtest.DSN(db)) }
	r, err := relay.New(relay.Config{Connect: connect, Publisher: broker, Wake: box.Wake()})
	if err != nil {
		panic(err)
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error)
	go func() { stopped <- r.Run(running) }()

	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := box.Add(ctx, tx,
			event.Event{Type: "placed.v1", Topic: "shop.orders.v1", Key: "order-7", Data: []byte(`{}`)},
			event.Event{Type: "paid.v1", Topic: "shop.orders.v1", Key: "order-7", Data: []byte(`{}`)},
		)
		return err
	})
	if err != nil {
		panic(err)
	}
	box.Committed()

	for range 2 {
		m := <-messages
		headers := m.Metadata
		fmt.Println(headers[event.KeyMetadata], headers[event.HeaderVersion], headers[event.HeaderType])
		m.Ack()
	}
	stop()
	fmt.Println("stopped:", <-stopped)
	if err := broker.Close(); err != nil {
		panic(err)
	}
	// Output:
	// order-7 1 placed.v1
	// order-7 2 paid.v1
	// stopped: <nil>
}
