package kafka

import (
	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// layout lays out the records of a call in a handful of allocations, whatever their number. If a guess at the sizes was
// too low a slice moves on; what points to its old place stays as it is.
type layout struct {
	records  []record
	bytes    []byte
	pairs    []sarama.RecordHeader
	pointers []*sarama.RecordHeader
	first    int // of pointers: where the headers of the record under way begin
}

func newLayout(records, headers, bytes int) *layout {
	return &layout{
		records:  make([]record, 0, records),
		bytes:    make([]byte, 0, bytes),
		pairs:    make([]sarama.RecordHeader, 0, headers),
		pointers: make([]*sarama.RecordHeader, 0, headers),
	}
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

func recordsOfMessages(msgs []*message.Message) []record {
	headers, bytes := 0, 0
	for _, msg := range msgs {
		headers += len(msg.Metadata) + 1
		bytes += len(msg.UUID) + len(cloudevent.HeaderID)
		for name, value := range msg.Metadata {
			bytes += len(name) + len(value)
		}
	}
	l := newLayout(len(msgs), headers, bytes)
	for _, msg := range msgs {
		if wire, is := cloudevent.ParseWire(msg.Metadata[cloudevent.RecordMetadata]); is {
			l.wire(wire, msg.Payload)
			continue
		}
		eachHeader(msg, func(name, value string) { l.header(l.copyOf(name), l.copyOf(value)) })
		l.record(msg.Metadata[cloudevent.KeyMetadata], msg.Payload)
	}
	return l.records
}

// wire lays out another system's record as it was.
func (l *layout) wire(w cloudevent.Wire, value []byte) {
	for _, h := range w.Headers {
		l.header([]byte(h.Name), h.Value)
	}
	l.record(string(w.Key), value)
}
