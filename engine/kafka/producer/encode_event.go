package producer

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka/internal/codec"
)

// Headers of every event. The slices are shared by all records; nothing writes to them.
var (
	nameID          = []byte(cloudevent.HeaderID)
	nameWatermillID = []byte(cloudevent.HeaderWatermillID)
	nameSource      = []byte(cloudevent.HeaderSource)
	nameType        = []byte(cloudevent.HeaderType)
	nameSpecVersion = []byte(cloudevent.HeaderSpecVersion)
	nameTime        = []byte(cloudevent.HeaderTime)
	nameSubject     = []byte(cloudevent.HeaderSubject)
	nameVersion     = []byte(cloudevent.HeaderVersion)
	nameDataSchema  = []byte(cloudevent.HeaderDataSchema)
	nameContentType = []byte(cloudevent.HeaderContentType)

	valueSpecVersion = []byte(cloudevent.SpecVersion)
	valueContentType = []byte(cloudevent.ContentTypeJSON)
)

const (
	eventHeaders = 10 // without extensions
	numberBytes  = 50 // a time and a version as text
)

func (l *layout) events(events []*cloudevent.Event) {
	headers, bytes := eventHeaders*len(events), numberBytes*len(events)
	for _, e := range events {
		headers += len(e.Extensions)
		bytes += len(e.ID) + 2*len(e.Key)
		for name, value := range e.Extensions {
			bytes += len(name) + len(value)
		}
	}
	l.expect(len(events), headers, bytes)
	writer := eventLayout{layout: l}
	for _, e := range events {
		if wire, is := cloudevent.ParseWire(e.Extensions[cloudevent.RecordMetadata]); is {
			l.wire(wire, e.Data)
			continue
		}
		writer.headers(e)
		l.record(e.Key, e.Data)
	}
}

// eventLayout writes what [codec.Each] would write of an event's message.
type eventLayout struct {
	*layout
	source, eventType, dataSchema repeated
}

func (l *eventLayout) headers(e *cloudevent.Event) {
	if e.ID != "" {
		id := l.copyOf(e.ID)
		l.header(nameID, id)
		l.header(nameWatermillID, id)
	}
	l.header(nameSource, l.source.bytes(e.Source))
	l.header(nameType, l.eventType.bytes(e.Type))
	l.header(nameSpecVersion, valueSpecVersion)
	start := len(l.bytes)
	l.bytes = e.Time.UTC().AppendFormat(l.bytes, time.RFC3339Nano)
	l.header(nameTime, l.since(start))
	l.header(nameSubject, l.copyOf(e.Key))
	if e.Version != 0 {
		start := len(l.bytes)
		l.bytes = strconv.AppendInt(l.bytes, e.Version, 10)
		l.header(nameVersion, l.since(start))
	} else {
		l.extension(e, cloudevent.HeaderVersion)
	}
	if e.DataSchema != "" {
		l.header(nameDataSchema, l.dataSchema.bytes(e.DataSchema))
	} else {
		l.extension(e, cloudevent.HeaderDataSchema)
	}
	l.header(nameContentType, valueContentType)
	if len(e.Extensions) > 0 {
		l.extensions(e)
	}
}

func (l *eventLayout) extension(e *cloudevent.Event, name string) bool {
	value, ok := e.Extensions[name]
	if ok {
		l.header(l.copyOf(name), l.copyOf(value))
	}
	return ok
}

// extensions are written like a message's: those that tell the cause first, which are most often all there are.
func (l *eventLayout) extensions(e *cloudevent.Event) {
	known := 0
	for _, name := range codec.Causes {
		if l.extension(e, name) {
			known++
		}
	}
	if known == len(e.Extensions) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if codec.IsExtra(name) {
			l.extension(e, name)
		}
	}
}

// repeated turns a value into bytes once as long as it stays the same from record to record.
type repeated struct {
	last string
	as   []byte
}

func (r *repeated) bytes(s string) []byte {
	if s != r.last || r.as == nil {
		r.last, r.as = s, []byte(s)
	}
	return r.as
}
