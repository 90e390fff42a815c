package main

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// handConsumer is what a careful user writes on watermill-kafka: a Router, and per message one transaction with the
// id, the contact and the mail. It checks no payload and no version, and gives up no message.
type handConsumer struct {
	pool    *pgxpool.Pool // Notification's
	router  *message.Router
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
	c := &handConsumer{arrived: cfg.arrived}
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
		Brokers: cfg.brokers, ConsumerGroup: cfg.environment + ".notification.users", OverwriteSaramaConfig: settings,
		Unmarshaler: wkafka.DefaultMarshaler{},
	}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make subscriber: %w", err)
	}
	c.router, err = message.NewRouter(message.RouterConfig{CloseTimeout: stopTimeout}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	c.router.AddConsumerHandler("welcome", contract.TopicUsers, subscriber, c.welcome)
	return c, nil
}

const (
	handInboxSQL = `insert into hand_inbox (consumer, event_id) values ($1, $2) on conflict do nothing`
	contactSQL   = `insert into contact (user_id, email, name, version) values ($1, $2, $3, $4)`
	mailSQL      = `
insert into mail (id, event_id, template, user_id, recipient, name) values ($1, $2, $3, $4, $5, $6)`
)

// welcome acknowledges the message when its transaction is committed.
func (c *handConsumer) welcome(msg *message.Message) error {
	var data domain.UserRegistered
	if err := json.Unmarshal(msg.Payload, &data); err != nil {
		return err
	}
	mail, err := uuid.NewV7()
	if err != nil {
		return err
	}
	fresh := false
	err = pgx.BeginFunc(msg.Context(), c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(msg.Context(), handInboxSQL, "notification.users", msg.UUID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		fresh = true
		if _, err = tx.Exec(msg.Context(), contactSQL, data.UserID, data.Email, data.Name, 1); err != nil {
			return err
		}
		_, err = tx.Exec(msg.Context(), mailSQL, mail, msg.UUID, "verification", data.UserID, data.Email, data.Name)
		return err
	})
	if err == nil && fresh {
		c.arrived(data.UserID)
	}
	return err
}

func (c *handConsumer) run(ctx context.Context) error {
	return runRouter(ctx, c.router.Run, c.router.Running(), c.router.Close)
}
