package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
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
func registered(ctx context.Context, tx pgx.Tx, e event.Event, m member) error {
	return inbox.Queue(ctx, tx, insertEffectSQL, e.ID, m.Number, m.Email)
}

// newBox is an inbox as package eventing wires it: defaults, metrics, and the services' log format and level, of which
// the text is thrown away. There is no contract to validate against here.
func newBox(c consumption, batch int, versioned bool) (*inbox.Inbox, *inbox.Mux, *slog.Logger, error) {
	mux, order := inbox.NewMux(), inbox.Unordered
	if versioned {
		order = inbox.Strict
	}
	inbox.Handle(mux, event.Define[member](event.Declaration{Type: eventType}), registered)
	log := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // what a line costs is measured too
	box, err := inbox.New(inbox.Config{
		Consumer: inboxConsumer, Group: c.group, Pool: c.pool, Accepts: mux.Accepts, Order: order, Batch: batch, Log: log,
		Registerer: prometheus.NewRegistry(),
	})
	return box, mux, log, err
}

// routedInbox is inbox.Middleware in a plain Router on watermill-kafka, with the settings of the services.
func routedInbox(versioned bool) func(context.Context, consumption) error {
	return func(ctx context.Context, c consumption) error {
		box, mux, _, err := newBox(c, 1, versioned)
		if err != nil {
			return err
		}
		members := kafka.ConsumerConfig{Config: kafka.Config{Brokers: c.brokers}, Group: c.group}
		subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
			Brokers: c.brokers, ConsumerGroup: c.group, Unmarshaler: kafka.Marshaler{},
			OverwriteSaramaConfig: members.Consumer(),
		}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		router, err := message.NewRouter(message.RouterConfig{CloseTimeout: stopTimeout}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		handle := box.Middleware(mux.HandleMessage)
		router.AddConsumerHandler("members", c.topic, subscriber, func(msg *message.Message) error {
			c.ledger.begin()
			if _, err := handle(msg); err != nil {
				return err
			}
			partition, _ := wkafka.MessagePartitionFromCtx(msg.Context())
			offset, _ := wkafka.MessagePartitionOffsetFromCtx(msg.Context())
			c.ledger.handled(partition, offset)
			return nil
		})
		err = runRouter(ctx, router.Run, router.Running(), router.Close)
		return errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
}

// ourInbox is kafka.Consumer with inbox.BatchMiddleware, as internal/service/eventing wires them.
func ourInbox(batch int, versioned bool) func(context.Context, consumption) error {
	return func(ctx context.Context, c consumption) error {
		box, mux, log, err := newBox(c, batch, versioned)
		if err != nil {
			return err
		}
		handle := box.BatchMiddleware(mux.HandleMessage)
		consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
			Config: kafka.Config{Brokers: c.brokers}, Group: c.group, DrainTimeout: 10 * time.Second, Batch: batch,
		}, func(ctx context.Context, msgs []*message.Message) (int, error) {
			c.ledger.begin()
			handled, err := handle(ctx, msgs)
			for _, msg := range msgs[:handled] {
				origin, _ := event.OriginFrom(msg.Context())
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
