// Package codec makes messages of records that are read.
package codec

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
)

// names are those that every event's headers have: one string for all of them.
var names = map[string]string{
	cloudevent.HeaderID: cloudevent.HeaderID, cloudevent.HeaderWatermillID: cloudevent.HeaderWatermillID,
}

func init() {
	for _, name := range cloudevent.Attributes {
		names[name] = name
	}
}

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
	for i, h := range r.Headers {
		name, known := names[string(h.Key)]
		if !known {
			name = string(h.Key)
		}
		headers[i] = cloudevent.Header{Name: name, Value: h.Value}
	}
	cloudevent.FillMessage(msg, r.Key, headers, r.Value)
	ctx.Origin = cloudevent.Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LastOffset: r.Offset, Time: r.Timestamp,
		Key: r.Key, Headers: headers,
	}
	msg.SetContext(ctx)
}
