package kafka

import (
	"bytes"
	"context"
	"strings"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka/internal/header"
)

// entry is what lies on the log, or the gap that a damaged batch leaves there.
type entry struct {
	*sarama.ConsumerMessage
	last       int64  // the last offset it stands for; its own, except for a gap
	unreadable error  // why nobody can read it
	raw        []byte // then the beginning of its batches as they lie on the log
	rawSize    int    // bytes of these batches
}

// keep adds a damaged batch to the gap, unless it is the one before, found again at its next offset.
func (r *entry) keep(f, before found) {
	if bytes.Equal(f.raw, before.raw) {
		return
	}
	r.raw = append(r.raw, f.raw[:min(len(f.raw), maxDamage-len(r.raw))]...)
	r.rawSize += f.size
}

func readable(m *sarama.ConsumerMessage) entry { return entry{ConsumerMessage: m, last: m.Offset} }

// size is what the record takes in memory, roughly: its bytes and what is around them.
func (r entry) size() int {
	n := 256 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 64 + len(h.Key) + len(h.Value)
	}
	return n
}

// decode makes a message whose acknowledgement can be waited for.
func decode(ctx context.Context, group string, r entry) *message.Message {
	msg := message.NewMessage("", nil)
	fill(msg, &cloudevent.OriginContext{Context: ctx}, make([]cloudevent.Header, len(r.Headers)), group, r)
	return msg
}

// decodeAll makes the messages of a batch. What every one of them needs is allocated once for all.
func decodeAll(ctx context.Context, group string, batch []entry) []*message.Message {
	total := 0
	for _, r := range batch {
		total += len(r.Headers)
	}
	pointers := make([]*message.Message, len(batch))
	messages := make([]message.Message, len(batch))
	contexts := make([]cloudevent.OriginContext, len(batch))
	headers := make([]cloudevent.Header, total)
	for i, r := range batch {
		pointers[i] = &messages[i]
		contexts[i].Context = ctx
		own := headers[:len(r.Headers):len(r.Headers)]
		headers = headers[len(r.Headers):]
		fill(pointers[i], &contexts[i], own, group, r)
	}
	return pointers
}

// fill never fails: whatever the record is, a message comes out.
func fill(msg *message.Message, ctx *cloudevent.OriginContext, headers []cloudevent.Header, group string, r entry) {
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
		Group: group, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp,
		Key: r.Key, Headers: headers, Unreadable: r.unreadable, LastOffset: r.last,
		Damaged: r.raw, DamagedSize: r.rawSize,
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
	for _, known := range header.Attributes {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}
