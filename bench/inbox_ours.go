package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// member is the part of the payload that the domain keeps.
type member struct {
	Number int64  `json:"number"`
	Email  string `json:"email"`
}

const insertEffectSQL = `insert into public.effect (event_id, number, email) values ($1, $2, $3)`

// registered is the typed handler: one write whose answer it does not need.
func registered(ctx context.Context, tx pgx.Tx, e cloudevent.Event, m member) error {
	return inbox.Queue(ctx, tx, insertEffectSQL, e.ID, m.Number, m.Email)
}

// ourInbox is kafka.Consumer with inbox.BatchMiddleware, as internal/eventing wires them: defaults, metrics, and the
// services' log format and level, of which the text is thrown away. There is no contract to validate against here.
func ourInbox(batch int, versioned bool) func(context.Context, consumption) error {
	return func(ctx context.Context, c consumption) error {
		mux := inbox.NewMux()
		inbox.Handle(mux, cloudevent.Define[member](cloudevent.Declaration{Type: eventType}), registered)
		log := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // what a line costs is measured too
		box, err := inbox.New(inbox.Config{
			Consumer: inboxConsumer, Pool: c.pool, Handlers: mux, Versioned: versioned, Batch: batch, Log: log,
			Registerer: prometheus.NewRegistry(),
		})
		if err != nil {
			return err
		}
		handle := box.BatchMiddleware(mux.HandleMessage)
		consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
			GroupConfig: kafka.GroupConfig{
				Config: kafka.Config{Brokers: c.brokers}, Group: c.group, DrainTimeout: 10 * time.Second,
			},
			Batch: batch, Positions: box,
		}, func(ctx context.Context, msgs []*message.Message) (int, error) {
			c.ledger.begin()
			handled, err := handle(ctx, msgs)
			for _, msg := range msgs[:handled] {
				origin, _ := cloudevent.OriginFrom(msg.Context())
				c.ledger.handled(origin.Partition, origin.Offset)
			}
			return handled, err
		}, log)
		if err != nil {
			return err
		}
		err = consumer.Run(ctx, c.topic)
		return errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
}
