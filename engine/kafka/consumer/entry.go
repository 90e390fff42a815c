package consumer

import (
	"bytes"
	"context"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka/internal/codec"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// entry is what lies on the log, or the gap that a damaged batch leaves there.
type entry struct {
	*sarama.ConsumerMessage
	last       int64  // the last offset it stands for; its own, except for a gap
	weight     int    // what it takes of the bytes that its partition may hold
	unreadable error  // why it cannot be read
	raw        []byte // then the beginning of its batches as they lie on the log
	rawSize    int    // bytes of these batches
}

// keep adds a damaged batch to the gap, unless it is the one before, found again at its next offset.
func (r *entry) keep(f, before reader.Found) {
	if bytes.Equal(f.Raw, before.Raw) {
		return
	}
	r.raw = append(r.raw, f.Raw[:min(len(f.Raw), reader.MaxDamage-len(r.raw))]...)
	r.rawSize += f.Size
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
		codec.Fill(pointers[i], &contexts[i], own, r.ConsumerMessage)
		o := &contexts[i].Origin
		o.Group, o.Unreadable, o.LastOffset, o.Damaged, o.DamagedSize = group, r.unreadable, r.last, r.raw, r.rawSize
	}
	return pointers
}
