// Package codec makes messages of records that are read.
package codec

import (
	"context"

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
	for i, h := range r.Headers {
		headers[i] = cloudevent.Header{Name: headerName(h.Key), Value: h.Value}
	}
	cloudevent.FillMessage(msg, r.Key, headers, r.Value)
	ctx.Origin = cloudevent.Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LastOffset: r.Offset, Time: r.Timestamp,
		Key: r.Key, Headers: headers,
	}
	msg.SetContext(ctx)
}

// headerName spares a string per header for the names that every event has.
func headerName(name []byte) string {
	switch string(name) {
	case cloudevent.HeaderID:
		return cloudevent.HeaderID
	case cloudevent.HeaderWatermillID:
		return cloudevent.HeaderWatermillID
	}
	for _, known := range cloudevent.Attributes {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}
