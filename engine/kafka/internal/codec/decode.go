package codec

import (
	"context"
	"strings"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// Decode makes a message whose acknowledgement can be waited for.
func Decode(ctx context.Context, r *sarama.ConsumerMessage) *message.Message {
	msg := message.NewMessage("", nil)
	Fill(msg, &cloudevent.OriginContext{Context: ctx}, make([]cloudevent.Header, len(r.Headers)), r)
	return msg
}

// Fill never fails: every record becomes a message. There is a place in headers for each of the record's.
func Fill(
	msg *message.Message, ctx *cloudevent.OriginContext, headers []cloudevent.Header, r *sarama.ConsumerMessage,
) {
	msg.Payload = r.Value
	msg.Metadata = make(message.Metadata, len(r.Headers)+1)
	text := headerText(r.Headers)
	for i, h := range r.Headers {
		name, value := headerName(h.Key), text[:len(h.Value)]
		text = text[len(h.Value):]
		headers[i] = cloudevent.Header{Name: name, Value: h.Value}
		if name == cloudevent.HeaderID {
			msg.UUID = value
			continue
		}
		msg.Metadata[name] = value
	}
	delete(msg.Metadata, cloudevent.HeaderWatermillID)
	delete(msg.Metadata, cloudevent.KeyMetadata)
	delete(msg.Metadata, cloudevent.RecordMetadata)
	if len(r.Key) > 0 {
		msg.Metadata[cloudevent.KeyMetadata] = string(r.Key)
	}
	ctx.Origin = cloudevent.Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LastOffset: r.Offset, Time: r.Timestamp,
		Key: r.Key, Headers: headers,
	}
	msg.SetContext(ctx)
}

// headerText is the values of all headers in one string: one allocation instead of one per header.
func headerText(headers []*sarama.RecordHeader) string {
	var text strings.Builder
	n := 0
	for _, h := range headers {
		n += len(h.Value)
	}
	text.Grow(n)
	for _, h := range headers {
		text.Write(h.Value)
	}
	return text.String()
}

// headerName spares a string per header for the names that every event has.
func headerName(name []byte) string {
	switch string(name) {
	case cloudevent.HeaderID:
		return cloudevent.HeaderID
	case cloudevent.HeaderWatermillID:
		return cloudevent.HeaderWatermillID
	}
	for _, known := range Attributes {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}
