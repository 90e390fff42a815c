package inbox

import (
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// originOf is where the record lies that the message was made of; false for a message that no broker delivered. Without
// [cloudevent.WithOrigin] it is what watermill-kafka's subscriber and Watermill's Router say: partition, offset, key and
// time, and the topic. The group is [Config.Group] then, and a dead letter's headers are the message's: of a name that
// came twice the last one, in the order of the names.
//
// The record's key is put into the message, in case an unmarshaler that knows nothing of keys has made it.
func (in *Inbox) originOf(msg *message.Message) (o cloudevent.Origin, known bool) {
	ctx := msg.Context()
	if o, known = cloudevent.OriginFrom(ctx); known {
		return o, true
	}
	o.Partition, known = wkafka.MessagePartitionFromCtx(ctx)
	o.Topic = message.SubscribeTopicFromCtx(ctx)
	if !known || o.Topic == "" {
		return cloudevent.Origin{}, false
	}
	o.Group = in.cfg.Group
	o.Offset, _ = wkafka.MessagePartitionOffsetFromCtx(ctx)
	o.Time, _ = wkafka.MessageTimestampFromCtx(ctx)
	o.Key, _ = wkafka.MessageKeyFromCtx(ctx)
	delete(msg.Metadata, cloudevent.KeyMetadata)
	if len(o.Key) > 0 {
		msg.Metadata[cloudevent.KeyMetadata] = string(o.Key)
	}
	return o, true
}
