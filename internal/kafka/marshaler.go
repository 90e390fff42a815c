package kafka

import (
	"context"

	"github.com/IBM/sarama"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
)

// Marshaler maps a Watermill message to a Kafka record and back: CloudEvents 1.0, binary mode.
//
//	message UUID      -> headers ce_id and [event.HeaderWatermillID]; absent when empty
//	message metadata  -> headers: CloudEvents attributes in a fixed order, then the rest by name
//	event.KeyMetadata -> record key; absent or empty: no key, and no order
//	message payload   -> record value
type Marshaler struct{}

// Marshal never fails.
func (Marshaler) Marshal(topic string, msg *message.Message) (*sarama.ProducerMessage, error) {
	headers := event.MessageHeaders(msg)
	to := &sarama.ProducerMessage{
		Topic:    topic,
		Value:    sarama.ByteEncoder(msg.Payload),
		Headers:  make([]sarama.RecordHeader, len(headers)),
		Metadata: msg.Context().Value(placeKey{}),
	}
	for i, h := range headers {
		to.Headers[i] = sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value}
	}
	if key := msg.Metadata[event.KeyMetadata]; key != "" {
		to.Key = sarama.StringEncoder(key)
	}
	return to, nil
}

// Unmarshal never fails. If a header occurs twice, the metadata keeps the last; [event.Origin] keeps all. A missing key
// or value becomes empty.
func (Marshaler) Unmarshal(from *sarama.ConsumerMessage) (*message.Message, error) {
	return decode(context.Background(), "", from, nil), nil
}

// from is the owner's position, nil if unknown.
func decode(ctx context.Context, group string, r *sarama.ConsumerMessage, from *int64) *message.Message {
	headers := make([]event.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = event.Header{Name: string(h.Key), Value: h.Value}
	}
	msg := event.RecordMessage(r.Key, headers, r.Value)
	msg.SetContext(event.WithOrigin(ctx, event.Origin{
		Group: group, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp,
		Key: r.Key, Headers: headers, From: from,
	}))
	return msg
}

// Origin is a middleware on watermill-kafka's stock Subscriber: it gives the inbox a record's place and key. It does
// not know where the Subscriber began, so the inbox does not notice a database that went back.
func Origin(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context()
		partition, known := wkafka.MessagePartitionFromCtx(ctx)
		if !known {
			return next(msg)
		}
		o := event.Origin{Topic: message.SubscribeTopicFromCtx(ctx), Partition: partition}
		o.Offset, _ = wkafka.MessagePartitionOffsetFromCtx(ctx)
		o.Time, _ = wkafka.MessageTimestampFromCtx(ctx)
		o.Key, _ = wkafka.MessageKeyFromCtx(ctx)
		msg.SetContext(event.WithOrigin(ctx, o))
		delete(msg.Metadata, event.KeyMetadata)
		if len(o.Key) > 0 {
			msg.Metadata[event.KeyMetadata] = string(o.Key)
		}
		return next(msg)
	}
}
