// Package cloudevent is the envelope that outbox, inbox and kafka share: one CloudEvents 1.0 event in binary mode,
// carried inside Watermill by a [message.Message].
//
// The mapping is the same at every station, so a message can be followed from the outbox row to the handler:
//
//	message UUID      <-> ce_id; written as [HeaderWatermillID], too
//	message metadata  <-> Kafka headers (ce_source, ce_type, content-type, traceparent ...)
//	message payload   <-> record value, the JSON document itself
//	[KeyMetadata]     <-> record key; never a header
package cloudevent

import (
	"maps"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Header names of the binary content mode. ce_aggregateversion is this project's extension: the standard "sequence"
// is compared as a string, in which 10 sorts before 9.
const (
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderSpecVersion = "ce_specversion"
	HeaderTime        = "ce_time"
	HeaderSubject     = "ce_subject"
	HeaderVersion     = "ce_aggregateversion"
	HeaderDataSchema  = "ce_dataschema"
	HeaderContentType = "content-type"
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// HeaderWatermillID is where watermill-kafka keeps a message's UUID. It is written beside [HeaderID], so that its
// subscriber reads the event's id as the UUID, and never read.
const HeaderWatermillID = "_watermill_message_uuid"

const (
	// SpecVersion is the only CloudEvents version this package writes and accepts.
	SpecVersion = "1.0"
	// ContentTypeJSON is the media type of every payload this project writes.
	ContentTypeJSON = "application/json"
	// MaxIDLength is the longest event id, in characters, that an inbox can remember.
	MaxIDLength = 255
	// MaxKeyBytes is the longest key of an event: indexes of a database do not take any length.
	MaxKeyBytes = 1024
	// KeyMetadata is the Watermill metadata entry that carries the record key between the marshaler and
	// the other packages. It is transport state, so it is not written as a header.
	KeyMetadata = "record_key"
)

// Event is one CloudEvent about one aggregate. The zero value of an optional field means that the attribute is absent.
type Event struct {
	ID         string            // ce_id: the inbox's key; UUIDv7 from our producers, any text from others
	Source     string            // ce_source: who wrote it, a URI reference such as "/twinbox/customer"
	Type       string            // ce_type: reverse DNS name with its version
	Topic      string            // where an outbox publishes it; no attribute, so an event that was read has none
	Key        string            // the aggregate's id: ce_subject and the record key
	Version    int64             // ce_aggregateversion: 1, 2, 3 ... per aggregate; 0 when the producer does not count
	DataSchema string            // ce_dataschema: URI of the payload's schema; optional
	Time       time.Time         // ce_time: business time, not relay time; UTC
	Data       []byte            // the payload, JSON
	Extensions map[string]string // every other header, such as traceparent; optional
}

// Message returns the event as a Watermill message with the event's record key.
func (e Event) Message() *message.Message {
	m := message.NewMessage(e.ID, e.Data)
	m.Metadata = make(message.Metadata, 10+len(e.Extensions)) // a relay makes millions: the map must not grow
	maps.Copy(m.Metadata, e.Extensions)
	m.Metadata[HeaderSource] = e.Source
	m.Metadata[HeaderType] = e.Type
	m.Metadata[HeaderSpecVersion] = SpecVersion
	m.Metadata[HeaderTime] = e.Time.UTC().Format(time.RFC3339Nano)
	m.Metadata[HeaderSubject] = e.Key
	m.Metadata[HeaderContentType] = ContentTypeJSON
	m.Metadata[KeyMetadata] = e.Key
	if e.Version != 0 {
		m.Metadata[HeaderVersion] = strconv.FormatInt(e.Version, 10)
	}
	if e.DataSchema != "" {
		m.Metadata[HeaderDataSchema] = e.DataSchema
	}
	return m
}
