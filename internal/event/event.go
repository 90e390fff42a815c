// Package event has the events that outbox, inbox and kafka share: CloudEvents 1.0 in binary mode. An [Event] travels
// in a Watermill [message.Message]:
//
//	message UUID      <-> ce_id; also written as [HeaderWatermillID]
//	message metadata  <-> Kafka headers (ce_source, ce_type, content-type, traceparent ...)
//	message payload   <-> record value, the JSON document itself
//	[KeyMetadata]     <-> record key; never a header
//
// A [Checker] checks an event's schema and rules, in the outbox and in the inbox.
package event

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
)

// Header names of the binary mode. ce_aggregateversion is this project's extension.
const (
	HeaderID          = "ce_id"
	HeaderSource      = "ce_source"
	HeaderType        = "ce_type"
	HeaderSpecVersion = "ce_specversion"
	HeaderTime        = "ce_time"
	HeaderSubject     = "ce_subject"
	HeaderVersion     = "ce_aggregateversion"
	HeaderDataSchema  = "ce_dataschema"
	HeaderPosition    = "ce_outboxposition" // position in the outbox; for the relay
	HeaderContentType = "content-type"
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// HeaderWatermillID is watermill-kafka's header for a message's UUID. It is not read.
const HeaderWatermillID = "_watermill_message_uuid"

const (
	// SpecVersion is the only supported CloudEvents version.
	SpecVersion = "1.0"
	// ContentTypeJSON is the media type of all payloads.
	ContentTypeJSON = "application/json"
	// MaxIDLength is the longest event id, in characters.
	MaxIDLength = 255
	// MaxKeyBytes is the longest key. PostgreSQL's indexes have a limit.
	MaxKeyBytes = 1024
	// KeyMetadata is the metadata entry with the record key. It is not a header.
	KeyMetadata = "record_key"
	// CopyPrefix begins the topics for copies of dead letters.
	CopyPrefix = "dlq."
)

// Event is one CloudEvent. An optional field that is zero is absent.
type Event struct {
	ID         string            // ce_id; UUIDv7 from our producers, any text from others
	Source     string            // ce_source, such as "/twinbox/customer"
	Type       string            // ce_type: reverse DNS name with its version
	Topic      string            // empty in an event that was read
	Key        string            // the aggregate's id: ce_subject and the record key
	Version    int64             // ce_aggregateversion: 1, 2, 3 ... per aggregate; 0: none
	DataSchema string            // ce_dataschema; optional
	Time       time.Time         // ce_time: business time, not relay time; UTC
	Data       []byte            // JSON
	Extensions map[string]string // other headers, byte for byte; optional
}

// Message returns the event as a Watermill message.
func (e Event) Message() *message.Message {
	m := message.NewMessage(e.ID, e.Data)
	m.Metadata = make(message.Metadata, 10+len(e.Extensions)) // the map must not grow
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

// Definition declares one version of one event: its envelope and, as T, its payload.
type Definition[T any] struct{ Declaration }

// Declaration is a [Definition] without its type, for lists of them.
type Declaration struct {
	Type       string // ce_type
	Topic      string
	Source     string // ce_source
	DataSchema string // ce_dataschema: the schema's $id

	// Name is the payload type's name, Payload [Definition.Decode] for untyped code. [Define] sets both.
	Name    string
	Payload func(Event) (any, error)
}

// Define declares an event whose payload is a T.
func Define[T any](d Declaration) Definition[T] {
	d.Name = reflect.TypeFor[T]().Name()
	d.Payload = func(e Event) (any, error) { return Definition[T]{d}.Decode(e) }
	return Definition[T]{d}
}

// New makes an event with the key and the time that its payload is about. Version 0 means the key's next number. The
// outbox adds id and cause.
func New[T Ruled](d Definition[T], version int64, payload T) (Event, error) {
	return NewOf(d.Declaration, version, payload)
}

// NewOf is [New] for untyped code.
func NewOf(d Declaration, version int64, payload Ruled) (Event, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return Event{}, fmt.Errorf("encode event %s: %w", d.Type, err)
	}
	key, at := payload.About()
	return Event{
		Source: d.Source, Type: d.Type, Topic: d.Topic, Key: key, Version: version,
		DataSchema: d.DataSchema, Time: at, Data: data,
	}, nil
}

// Decode reads an event's payload. It ignores unknown members and compares names letter by letter: encoding/json lets
// an unchecked "NAME" overwrite a checked "name". The error has no values.
func (d Definition[T]) Decode(e Event) (T, error) {
	var payload T
	if err := json.Unmarshal(e.Data, &payload); err != nil {
		var none T
		if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
			return none, fmt.Errorf("the payload does not decode into %T: %q is of another type", none, wrong.JSONPointer)
		}
		return none, errors.New("the payload is not one JSON document in UTF-8 with unique members")
	}
	return payload, nil
}
