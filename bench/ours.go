package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
)

// ours is this project's outbox with its defaults.
type ours struct {
	db      *database
	outbox  *outbox.Outbox
	counter statementCounter
	spans   *event.Spans
	traced  bool // its events are of sampled requests
}

func newOurs(db *database) (*ours, error) {
	o, err := outbox.New(outbox.Config{Source: eventSource})
	if err != nil {
		return nil, err
	}
	return &ours{db: db, outbox: o}, nil
}

func (o *ours) write(ctx context.Context, tx pgx.Tx, c corpus, numbers ...int) error {
	events := make([]event.Event, len(numbers))
	for i, n := range numbers {
		events[i] = c.event(n)
	}
	_, err := o.outbox.Add(ctx, tx, events...)
	return err
}

func (o *ours) queue(ctx context.Context, b *pgx.Batch, c corpus, number int) error {
	return o.outbox.Queue(ctx, b, c.event(number))
}

func (o *ours) committed() { o.outbox.Committed() }

func (o *ours) relay(ctx context.Context, p message.Publisher) error {
	cfg, err := o.counter.connConfig(o.db.dsn)
	if err != nil {
		return err
	}
	r, err := relay.New(relay.Config{
		Connect:   func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg) },
		Publisher: p,
		Wake:      o.outbox.Wake(),
		Name:      "bench",
		BatchSize: batchSize,
		Spans:     o.spans,
	})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (o *ours) publisher(brokers []string) (message.Publisher, error) {
	return kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
}

const oursRecordedSQL = `
select win is null and head >= (select coalesce(max(position), 0) from public.outbox)
from public.outbox_cursor`

func (o *ours) recorded(ctx context.Context) error { return o.db.await(ctx, oursRecordedSQL) }

func (o *ours) statements() int64 { return o.counter.n.Load() }

func (*ours) close() error { return nil }

// await polls a query until it says true.
func (d *database) await(ctx context.Context, query string, args ...any) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		if err := d.QueryRow(ctx, query, args...).Scan(&yes); err != nil {
			return fmt.Errorf("wait for the relay's record: %w", err)
		}
		if yes {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the relay's record: %w", context.Cause(ctx))
		}
	}
}
