package main

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
)

type ours struct {
	db     *database
	outbox *outbox.Outbox
}

func newOurs(db *database) (variant, error) {
	o, err := outbox.New(outbox.Config{})
	if err != nil {
		return nil, err
	}
	return &ours{db, o}, nil
}

func (o *ours) write(ctx context.Context, tx pgx.Tx, events ...event.Event) error {
	_, err := o.outbox.Add(ctx, tx, events...)
	return err
}

func (o *ours) queue(ctx context.Context, b *pgx.Batch, e event.Event) error {
	return o.outbox.Queue(ctx, b, e)
}

func (o *ours) committed() { o.outbox.Committed() }

func (o *ours) relay(ctx context.Context, p message.Publisher) error {
	r, err := relay.New(relay.Config{
		Connect:   func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, o.db.dsn) },
		Publisher: p,
		Wake:      o.outbox.Wake(),
		Name:      "bench",
	})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (*ours) publisher(brokers []string, events *arrivals[string]) (message.Publisher, error) {
	p, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
	return ourPublisher{p, events}, err
}

func (*ours) table() string { return "public.outbox" }

func (*ours) close() error { return nil }

type ourPublisher struct {
	*kafka.Publisher
	events *arrivals[string]
}

func (p ourPublisher) PublishAcked(
	ctx context.Context, topic string, msgs ...*message.Message,
) (repeated bool, err error) {
	repeated, err = p.Publisher.PublishAcked(ctx, topic, msgs...)
	noteTaken(p.events, msgs, err)
	return repeated, err
}
