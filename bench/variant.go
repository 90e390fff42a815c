package main

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
)

// variant is an outbox with its relay, in one database. Both implementations run through the same code, so what is
// measured differs in nothing but them.
type variant interface {
	// write adds events of the corpus to the caller's transaction.
	write(ctx context.Context, tx pgx.Tx, c corpus, numbers ...int) error
	// committed is called after each commit.
	committed()
	// relay publishes until ctx ends, then returns nil.
	relay(ctx context.Context, p message.Publisher) error
	// publisher connects a publisher as this variant is used with Kafka.
	publisher(brokers []string) (message.Publisher, error)
	// recorded waits until the relay has stored that everything is published: what it writes for that is part of its
	// cost, but not of its speed.
	recorded(ctx context.Context) error
	// statements is how many SQL statements the relay has sent.
	statements() int64
	close() error
}

// queuer is a variant whose write can travel with other statements.
type queuer interface {
	// queue adds an event of the corpus to statements that the caller sends in its transaction.
	queue(ctx context.Context, b *pgx.Batch, c corpus, number int) error
}
