package producer

import (
	"slices"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka/internal/codec"
)

// layout lays out any number of records in a handful of allocations, and in none when it
// is used again. If a guess at the sizes was too low a slice moves on; what points to its
// old place stays as it is.
type layout struct {
	records  []record
	bytes    []byte
	pairs    []sarama.RecordHeader
	pointers []*sarama.RecordHeader
	first    int // of pointers: where the headers of the record under way begin
}

// expect makes room.
func (l *layout) expect(records, headers, bytes int) {
	l.records = slices.Grow(l.records, records)
	l.pairs = slices.Grow(l.pairs, headers)
	l.pointers = slices.Grow(l.pointers, headers)
	l.bytes = slices.Grow(l.bytes, bytes)
}

// reset forgets the records, and lets go of what is not the layout's own: the values.
func (l *layout) reset() {
	clear(l.records)
	clear(l.pairs)
	l.records, l.pairs, l.pointers, l.bytes = l.records[:0], l.pairs[:0], l.pointers[:0], l.bytes[:0]
	l.first = 0
}

func (l *layout) copyOf(s string) []byte {
	start := len(l.bytes)
	l.bytes = append(l.bytes, s...)
	return l.since(start)
}

func (l *layout) since(start int) []byte { return l.bytes[start:len(l.bytes):len(l.bytes)] }

func (l *layout) header(name, value []byte) {
	l.pairs = append(l.pairs, sarama.RecordHeader{Key: name, Value: value})
	l.pointers = append(l.pointers, &l.pairs[len(l.pairs)-1])
}

// record ends the record to which the headers so far belong.
func (l *layout) record(key string, value []byte) {
	headers := l.pointers[l.first:len(l.pointers):len(l.pointers)]
	l.first = len(l.pointers)
	r := record{key: key, size: recordOverhead + len(key) + len(value)}
	r.data = sarama.Record{Value: value, Headers: headers}
	for _, h := range headers {
		r.size += headerOverhead + len(h.Key) + len(h.Value)
	}
	if key != "" {
		r.data.Key = l.copyOf(key)
	}
	l.records = append(l.records, r)
}

func (l *layout) messages(msgs []*message.Message) {
	headers, bytes := 0, 0
	for _, msg := range msgs {
		headers += len(msg.Metadata) + 2
		bytes += 2*len(msg.UUID) + len(cloudevent.HeaderID) + len(cloudevent.HeaderWatermillID)
		for name, value := range msg.Metadata {
			bytes += len(name) + len(value)
		}
	}
	l.expect(len(msgs), headers, bytes)
	for _, msg := range msgs {
		if wire, is := cloudevent.ParseWire(msg.Metadata[cloudevent.RecordMetadata]); is {
			l.wire(wire, msg.Payload)
			continue
		}
		codec.Each(msg, func(name, value string) { l.header(l.copyOf(name), l.copyOf(value)) })
		l.record(msg.Metadata[cloudevent.KeyMetadata], msg.Payload)
	}
}

// wire lays out another system's record as it was.
func (l *layout) wire(w cloudevent.Wire, value []byte) {
	for _, h := range w.Headers {
		l.header([]byte(h.Name), h.Value)
	}
	if w.NullValue {
		value = nil
	}
	l.record(string(w.Key), value)
	if w.Key != nil && len(w.Key) == 0 {
		l.records[len(l.records)-1].data.Key = w.Key // empty, which is not null
	}
}
