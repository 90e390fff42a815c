package kafka

import (
	"context"

	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

func init() { cloudevent.RegisterOrigin(watermillOrigin) }

// watermillOrigin is what watermill-kafka's subscriber says of a record, and the topic as Watermill's Router does.
func watermillOrigin(ctx context.Context) (o cloudevent.Origin, ok bool) {
	o.Partition, ok = wkafka.MessagePartitionFromCtx(ctx)
	o.Topic = message.SubscribeTopicFromCtx(ctx)
	if !ok || o.Topic == "" {
		return cloudevent.Origin{}, false
	}
	o.Offset, _ = wkafka.MessagePartitionOffsetFromCtx(ctx)
	o.Time, _ = wkafka.MessageTimestampFromCtx(ctx)
	o.Key, _ = wkafka.MessageKeyFromCtx(ctx)
	return o, true
}
