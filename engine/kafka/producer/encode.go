package producer

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// layout lays out any number of records in a handful of allocations, and in none when it is used again. When a slice
// has to grow it moves on; what points to its old place stays as it is.
type layout struct {
	records  []record
	bytes    []byte
	pairs    []sarama.RecordHeader
	pointers []*sarama.RecordHeader
	first    int // of pointers: where the headers of the record under way begin
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
	return l.bytes[start:len(l.bytes):len(l.bytes)]
}

func (l *layout) header(name, value []byte) {
	l.pairs = append(l.pairs, sarama.RecordHeader{Key: name, Value: value})
	l.pointers = append(l.pointers, &l.pairs[len(l.pairs)-1])
}

func (l *layout) text(name, value string) { l.header(l.copyOf(name), l.copyOf(value)) }

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
	for _, msg := range msgs {
		if !l.wire(msg.Metadata[cloudevent.RecordMetadata], msg.Payload) {
			cloudevent.EachHeader(msg, l.text)
			l.record(msg.Metadata[cloudevent.KeyMetadata], msg.Payload)
		}
	}
}

func (l *layout) events(events []*cloudevent.Event) {
	for _, e := range events {
		if !l.wire(e.Extensions[cloudevent.RecordMetadata], e.Data) {
			l.eventHeaders(e)
			l.record(e.Key, e.Data)
		}
	}
}

// wire lays out another system's record as it was, if it is one.
func (l *layout) wire(encoded string, value []byte) bool {
	w, is := cloudevent.ParseWire(encoded)
	if !is {
		return false
	}
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
	return true
}

// eventHeaders writes what [cloudevent.EachHeader] would write of an event's message.
func (l *layout) eventHeaders(e *cloudevent.Event) {
	if e.ID != "" {
		l.text(cloudevent.HeaderID, e.ID)
		l.text(cloudevent.HeaderWatermillID, e.ID)
	}
	l.text(cloudevent.HeaderSource, e.Source)
	l.text(cloudevent.HeaderType, e.Type)
	l.text(cloudevent.HeaderSpecVersion, cloudevent.SpecVersion)
	var digits [32]byte // keeps the texts below off the heap
	l.text(cloudevent.HeaderTime, string(e.Time.UTC().AppendFormat(digits[:0], time.RFC3339Nano)))
	l.text(cloudevent.HeaderSubject, e.Key)
	if e.Version != 0 {
		l.text(cloudevent.HeaderVersion, string(strconv.AppendInt(digits[:0], e.Version, 10)))
	} else {
		l.extension(e, cloudevent.HeaderVersion)
	}
	if e.DataSchema != "" {
		l.text(cloudevent.HeaderDataSchema, e.DataSchema)
	} else {
		l.extension(e, cloudevent.HeaderDataSchema)
	}
	l.text(cloudevent.HeaderContentType, cloudevent.ContentTypeJSON)
	known := 0
	for _, name := range cloudevent.Causes { // most often these are all there are
		known += l.extension(e, name)
	}
	if known == len(e.Extensions) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if cloudevent.IsExtra(name) {
			l.extension(e, name)
		}
	}
}

// extension returns how many there are of that name.
func (l *layout) extension(e *cloudevent.Event, name string) int {
	value, ok := e.Extensions[name]
	if !ok {
		return 0
	}
	l.text(name, value)
	return 1
}
