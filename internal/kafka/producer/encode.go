package producer

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
)

// layout lays out any number of records in a handful of allocations, and in none when it is used again. When a slice
// has to grow it moves on; what points to its old place stays as it is.
type layout struct {
	records  []record
	bytes    []byte
	pairs    []sarama.RecordHeader
	pointers []*sarama.RecordHeader // to the pairs of the records that are laid out
}

// reset forgets the records, and lets go of what is not the layout's own: the values.
func (l *layout) reset() {
	clear(l.records)
	clear(l.pairs)
	l.records, l.pairs, l.pointers, l.bytes = l.records[:0], l.pairs[:0], l.pointers[:0], l.bytes[:0]
}

// header copies a header of the next record.
func (l *layout) header(name, value string) {
	start := len(l.bytes)
	l.bytes = append(append(l.bytes, name...), value...)
	both := l.bytes[start:len(l.bytes):len(l.bytes)]
	l.pairs = append(l.pairs, sarama.RecordHeader{Key: both[:len(name):len(name)], Value: both[len(name):]})
}

// record ends the record to which the headers so far belong.
func (l *layout) record(key string, value []byte) {
	r := record{key: key, size: recordOverhead + len(key) + len(value)}
	first := len(l.pointers)
	for i := first; i < len(l.pairs); i++ {
		h := &l.pairs[i]
		l.pointers = append(l.pointers, h)
		r.size += headerOverhead + len(h.Key) + len(h.Value)
	}
	r.data = sarama.Record{Value: value, Headers: l.pointers[first:len(l.pointers):len(l.pointers)]}
	if key != "" {
		start := len(l.bytes)
		l.bytes = append(l.bytes, key...)
		r.data.Key = l.bytes[start:len(l.bytes):len(l.bytes)]
	}
	l.records = append(l.records, r)
}

func (l *layout) messages(msgs []*message.Message) {
	for _, msg := range msgs {
		if !l.wire(msg.Metadata[cloudevent.RecordMetadata], msg.Payload) {
			cloudevent.EachHeader(msg, l.header)
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
		l.pairs = append(l.pairs, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
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
	written := 0 // of the extensions
	extension := func(name string) {
		if value, ok := e.Extensions[name]; ok {
			l.header(name, value)
			written++
		}
	}
	if e.ID != "" {
		l.header(cloudevent.HeaderID, e.ID)
		l.header(cloudevent.HeaderWatermillID, e.ID)
	}
	l.header(cloudevent.HeaderSource, e.Source)
	l.header(cloudevent.HeaderType, e.Type)
	l.header(cloudevent.HeaderSpecVersion, cloudevent.SpecVersion)
	var digits [32]byte // keeps the texts below off the heap
	l.header(cloudevent.HeaderTime, string(e.Time.UTC().AppendFormat(digits[:0], time.RFC3339Nano)))
	l.header(cloudevent.HeaderSubject, e.Key)
	if e.Version != 0 {
		l.header(cloudevent.HeaderVersion, string(strconv.AppendInt(digits[:0], e.Version, 10)))
	} else {
		extension(cloudevent.HeaderVersion)
	}
	if e.DataSchema != "" {
		l.header(cloudevent.HeaderDataSchema, e.DataSchema)
	} else {
		extension(cloudevent.HeaderDataSchema)
	}
	l.header(cloudevent.HeaderContentType, cloudevent.ContentTypeJSON)
	for _, name := range cloudevent.Causes { // most often these are all there are
		extension(name)
	}
	if written == len(e.Extensions) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if cloudevent.IsExtra(name) {
			extension(name)
		}
	}
}
