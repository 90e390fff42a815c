package main

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// variant is an outbox with its relay, in one database. Every variant runs through the same code.
type variant interface {
	// write adds events to the caller's transaction.
	write(ctx context.Context, tx pgx.Tx, events ...event.Event) error
	// committed is called after each commit.
	committed()
	// relay publishes until ctx ends, then returns nil.
	relay(ctx context.Context, p message.Publisher) error
	// publisher makes a publisher as this variant uses Kafka.
	publisher(brokers []string) (message.Publisher, error)
	noting(p message.Publisher, events *arrivals[string]) message.Publisher
	// table has a row for each event that was written.
	table() string
	close() error
}

// queuer is a variant whose write can travel with other statements.
type queuer interface {
	// queue adds an event to statements that the caller sends in its transaction.
	queue(ctx context.Context, b *pgx.Batch, e event.Event) error
}
