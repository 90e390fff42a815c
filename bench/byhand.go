package main

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
)

// consumeByHand is a careful user's consumer on Watermill: its Router on watermill-kafka's subscriber, which passes on
// one message of a partition at a time. The group begins with the oldest record: the default would lose events.
func consumeByHand(
	ctx context.Context, brokers []string, group, topic string, unmarshaler wkafka.Unmarshaler,
	handle message.NoPublishHandlerFunc,
) error {
	cfg := wkafka.DefaultSaramaSubscriberConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: group, Unmarshaler: unmarshaler, OverwriteSaramaConfig: cfg,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: stopTimeout}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router.AddConsumerHandler("by-hand", topic, subscriber, handle)
	return runRouter(ctx, router.Run, router.Running(), router.Close)
}

const byHandInbox = `
create table by_hand_inbox (
    consumer text not null, event_id text not null, event_time timestamptz not null default now(),
    primary key (consumer, event_id))`

const insertByHand = `insert into by_hand_inbox (consumer, event_id) values ($1, $2) on conflict do nothing`

func rememberID(ctx context.Context, tx pgx.Tx, msg *message.Message) (isNew bool, err error) {
	tag, err := tx.Exec(ctx, insertByHand, inboxConsumer, msg.UUID)
	return tag.RowsAffected() == 1, err
}
