package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// An event is added in the transaction of its change. Without a commit there is no event.
func ExampleOutbox_Add() {
	ctx := context.Background()
	db, drop := pgtest.Open(migrations.Outbox)
	defer drop()
	box, err := outbox.New(outbox.Config{Source: "/shop"})
	if err != nil {
		panic(err)
	}
	placed := event.Event{
		Type: "com.example.shop.order-placed.v1", Topic: "shop.orders.v1", Key: "order-7", Data: []byte(`{"total": 42}`),
	}

	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// ... insert the order ...
		added, err := box.Add(ctx, tx, placed)
		if err == nil {
			fmt.Println("added as version", added[0].Version)
		}
		return err
	})
	box.Committed() // the relay need not wait for its next poll
	fmt.Println("committed:", err == nil)

	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		paid := placed
		paid.Type, paid.Version = "com.example.shop.order-paid.v1", 5 // this caller's guess of the next version
		_, err := box.Add(ctx, tx, paid)
		return err
	})
	fmt.Println("conflict:", errors.Is(err, outbox.ErrVersionConflict))

	var events int
	if err := db.QueryRow(ctx, `select count(*) from outbox`).Scan(&events); err != nil {
		panic(err)
	}
	fmt.Println("events:", events)
	// Output:
	// added as version 1
	// committed: true
	// conflict: true
	// events: 1
}
