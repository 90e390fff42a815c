package kafka

import (
	"context"
	"slices"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// Marshaler maps a Watermill message to a Kafka record and back: CloudEvents 1.0, binary mode. It is a
// MarshalerUnmarshaler of watermill-kafka, so the stock publisher and subscriber can use it too.
//
//	message UUID              -> header ce_id, the first one; absent when the UUID is empty
//	message metadata          -> headers: CloudEvents attributes in a fixed order, then the rest by name
//	cloudevent.KeyMetadata    -> record key; absent or empty: no key, and no order
//	cloudevent.RecordMetadata -> key and headers of another system's record; then nothing else of the metadata counts
//	message payload           -> record value, byte for byte
//
// Watermill's own header for the UUID is not written.
type Marshaler struct{}

// attributes are the headers that every event of this project has, in the order in which they are written.
var attributes = []string{
	cloudevent.HeaderSource, cloudevent.HeaderType, cloudevent.HeaderSpecVersion, cloudevent.HeaderTime,
	cloudevent.HeaderSubject, cloudevent.HeaderVersion, cloudevent.HeaderDataSchema, cloudevent.HeaderContentType,
	cloudevent.HeaderTraceParent, cloudevent.HeaderTraceState,
}

// Marshal never fails.
func (Marshaler) Marshal(topic string, msg *message.Message) (*sarama.ProducerMessage, error) {
	record := &sarama.ProducerMessage{
		Topic:   topic,
		Value:   sarama.ByteEncoder(msg.Payload),
		Headers: make([]sarama.RecordHeader, 0, len(msg.Metadata)+1),
	}
	if wire, is := cloudevent.ParseWire(msg.Metadata[cloudevent.RecordMetadata]); is {
		for _, h := range wire.Headers {
			record.Headers = append(record.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
		if len(wire.Key) > 0 {
			record.Key = sarama.ByteEncoder(wire.Key)
		}
		return record, nil
	}
	eachHeader(msg, func(name, value string) {
		record.Headers = append(record.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	})
	if key := msg.Metadata[cloudevent.KeyMetadata]; key != "" {
		record.Key = sarama.StringEncoder(key)
	}
	return record, nil
}

// eachHeader calls write for every header of the message, always in the same order.
func eachHeader(msg *message.Message, write func(name, value string)) {
	if msg.UUID != "" {
		write(cloudevent.HeaderID, msg.UUID)
	}
	left := len(msg.Metadata)
	for _, name := range attributes {
		if value, ok := msg.Metadata[name]; ok {
			write(name, value)
			left--
		}
	}
	if _, ok := msg.Metadata[cloudevent.KeyMetadata]; ok {
		left--
	}
	if left == 0 {
		return
	}
	others := make([]string, 0, left)
	for name := range msg.Metadata {
		if isExtra(name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		write(name, msg.Metadata[name])
	}
}

// isExtra reports whether a header is neither the id, nor the key, nor one of the attributes.
func isExtra(name string) bool {
	return name != cloudevent.KeyMetadata && name != cloudevent.HeaderID && !slices.Contains(attributes, name)
}

// Unmarshal never fails: whatever the record is, a message comes out, and the handler decides. Of a header that occurs
// twice the metadata keep the last; [cloudevent.Origin] keeps all, byte for byte. A missing key or value is an empty
// one. A header that happens to be named like [cloudevent.KeyMetadata] does not pass for the record key.
func (Marshaler) Unmarshal(record *sarama.ConsumerMessage) (*message.Message, error) {
	return decode(context.Background(), "", readable(record)), nil
}
