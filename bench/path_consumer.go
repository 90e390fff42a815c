package main

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/notification"
)

// handConsumer is what a careful user writes on watermill-kafka: a Router, and per message one transaction with the
// id and the service's own handler. It checks no payload and no version, and gives up no message.
type handConsumer struct {
	pool    *pgxpool.Pool // Notification's
	router  *message.Router
	welcome *inbox.Mux // writes what ours writes
	arrived func(domain.UserID)
}

const handInboxTable = `
create table hand_inbox (
    consumer     text        not null,
    event_id     text        not null,
    processed_at timestamptz not null default clock_timestamp(),
    primary key (consumer, event_id)
)`

func newHandConsumer(ctx context.Context, cfg lineConfig) (_ *handConsumer, err error) {
	c := &handConsumer{welcome: notification.UserEvents(), arrived: cfg.arrived}
	if c.pool, err = servicePool(ctx, cfg.notification); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.pool.Close()
		}
	}()
	if _, err = c.pool.Exec(ctx, handInboxTable); err != nil {
		return nil, fmt.Errorf("create inbox: %w", err)
	}
	settings := wkafka.DefaultSaramaSubscriberConfig()
	settings.Version = sarama.V3_6_0_0
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest // or it misses what was published before it joined
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: cfg.brokers, ConsumerGroup: "twinbox." + cfg.environment + ".notification.users",
		OverwriteSaramaConfig: settings, Unmarshaler: wkafka.DefaultMarshaler{},
	}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make subscriber: %w", err)
	}
	c.router, err = message.NewRouter(message.RouterConfig{CloseTimeout: stopTimeout}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	c.router.AddConsumerHandler("welcome", contract.TopicUsers, subscriber, c.handle)
	return c, nil
}

const handInboxSQL = `insert into hand_inbox (consumer, event_id) values ($1, $2) on conflict do nothing`

// handle acknowledges the message when its transaction is committed.
func (c *handConsumer) handle(msg *message.Message) error {
	e, err := event.FromMessage(msg)
	if err != nil {
		return err
	}
	fresh := false
	err = pgx.BeginFunc(msg.Context(), c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(msg.Context(), handInboxSQL, "notification.users", e.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		fresh = true
		return c.welcome.Apply(msg.Context(), tx, e)
	})
	if err == nil && fresh {
		c.arrived(domain.UserID(e.Key))
	}
	return err
}

func (c *handConsumer) run(ctx context.Context) error {
	return runRouter(ctx, c.router.Run, c.router.Running(), c.router.Close)
}
