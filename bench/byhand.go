package main

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

// consumeByHand is what a careful user writes on Watermill's Router. A new group begins with the oldest record: with
// the newest, the default, it would lose events. It logs nothing.
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
