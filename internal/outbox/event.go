package outbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"example.com/twinbox/internal/cloudevent"
)

// Event is what a transaction wants to be published if, and only if, it commits.
type Event struct {
	ID         string            // UUID in its canonical form; "" = a new UUIDv7. One id is one event: see [Outbox.Add]
	Source     string            // URI reference of the writer; "" = [Config.Source]
	Type       string            // reverse DNS name with its version
	Topic      string            // where it goes; 1 to 249 of [a-zA-Z0-9._-]
	Key        string            // the aggregate: record key and ce_subject; at most 1,024 bytes
	Version    int64             // 0 = the key's next number in this topic; else it must be exactly that number
	DataSchema string            // URI of the payload's schema; optional
	OccurredAt time.Time         // business time, kept to the microsecond; zero = now
	Data       []byte            // the payload, JSON
	Extensions map[string]string // further headers; what the context says of the cause is added, see cloudevent.Cause
}

// Added is what became of an [Event].
type Added struct {
	ID       string
	Version  int64 // the key's number in its topic
	Position int64 // the row's place in the outbox; other transactions' rows lie in between
	Repeated bool  // the event had been added under this id before: nothing was added, Version and Position are 0
}

// Code names one way in which an event cannot be added. The names are stable.
type Code string

// The codes of an [EventError].
const (
	CodeInvalidID         Code = "invalid_id"
	CodeMissingType       Code = "missing_type"
	CodeMissingSource     Code = "missing_source"
	CodeMissingTopic      Code = "missing_topic"
	CodeInvalidTopic      Code = "invalid_topic"
	CodeMissingKey        Code = "missing_key"
	CodeInvalidKey        Code = "invalid_key"
	CodeInvalidVersion    Code = "invalid_version"
	CodeInvalidTime       Code = "invalid_time"
	CodeMissingData       Code = "missing_data"
	CodeInvalidText       Code = "invalid_text" // a NUL or broken UTF-8, which PostgreSQL would refuse
	CodeReservedExtension Code = "reserved_extension"
	CodeTooLarge          Code = "too_large"
	CodeInvalidPayload    Code = "invalid_payload" // [Config.Validate] refused it; its error is wrapped
	CodeIDConflict        Code = "id_conflict"     // the id that the caller gave belongs to another event
)

// An EventError says which event of a call cannot be added and why. Nothing of the call was added and the transaction
// stays usable; for [CodeIDConflict] the database was asked, for the others nothing was sent. It never repeats the
// payload.
type EventError struct {
	Code   Code
	Index  int // of the event in the call
	Detail string
	Err    error // what [Config.Validate] said, else nil
}

func (e *EventError) Error() string {
	return fmt.Sprintf("add event %d: %s: %s", e.Index, e.Code, e.Detail)
}

func (e *EventError) Unwrap() error { return e.Err }

// Permanent reports true: the same event will be refused again.
func (e *EventError) Permanent() bool { return true }

// ErrorCode is the code as text: the name under which an event is dead-lettered whose handler got this error.
func (e *EventError) ErrorCode() string { return string(e.Code) }

// ErrVersionConflict means that an event's Version was not its key's next number: somebody else has added an event
// since the caller read the aggregate. Nothing of the call was added. The transaction stays usable, but what it has
// decided rests on an old state: roll back, read again.
var ErrVersionConflict = errors.New("outbox: version is not the key's next")

const (
	maxTopicBytes = 249 // Kafka's limit
	maxKeyBytes   = 1024
)

// Business times outside these years are refused by every consumer of this project.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// complete fills in what the caller left to us.
func (e Event) complete(source string, now time.Time, cause cloudevent.Cause) (Event, error) {
	e.Extensions = cause.Extend(e.Extensions)
	if e.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return e, fmt.Errorf("make event id: %w", err)
		}
		e.ID = id.String()
	}
	if e.Source == "" {
		e.Source = source
	}
	if e.OccurredAt.IsZero() {
		e.OccurredAt = now
	}
	e.OccurredAt = e.OccurredAt.UTC().Truncate(time.Microsecond)
	return e, nil
}

// check finds what the database, the broker or a consumer would refuse later, when nobody could be told any more.
func (e Event) check(maxBytes int) *EventError {
	id, err := uuid.Parse(e.ID)
	switch {
	case err != nil || id.String() != e.ID || id == uuid.Nil: // one spelling only: consumers compare ids as text
		return refuse(CodeInvalidID, "not a UUID in its canonical form")
	case e.Type == "":
		return refuse(CodeMissingType, "no type")
	case e.Source == "":
		return refuse(CodeMissingSource, "no source")
	case e.Topic == "":
		return refuse(CodeMissingTopic, "no topic")
	case !validTopic(e.Topic):
		return refuse(CodeInvalidTopic, "not a topic name")
	case e.Key == "":
		return refuse(CodeMissingKey, "no key")
	case len(e.Key) > maxKeyBytes:
		return refuse(CodeInvalidKey, fmt.Sprintf("%d bytes, at most %d", len(e.Key), maxKeyBytes))
	case e.Version < 0:
		return refuse(CodeInvalidVersion, "negative")
	case e.OccurredAt.Before(earliest) || !e.OccurredAt.Before(latest):
		return refuse(CodeInvalidTime, "outside the years 2000 to 2199")
	case len(e.Data) == 0:
		return refuse(CodeMissingData, "no payload")
	}
	if err := e.checkText(); err != nil {
		return err
	}
	if size := e.size(); size > maxBytes {
		return refuse(CodeTooLarge, fmt.Sprintf("%d bytes with headers, at most %d", size, maxBytes))
	}
	return nil
}

func (e Event) checkText() *EventError {
	for _, text := range []string{e.Source, e.Type, e.Key, e.DataSchema} {
		if !validText(text) {
			return refuse(CodeInvalidText, "an attribute holds a NUL or is not UTF-8")
		}
	}
	for name, value := range e.Extensions {
		if name == "" || !validText(name) || !validText(value) {
			return refuse(CodeInvalidText, "an extension is unnamed, holds a NUL or is not UTF-8")
		}
		if reserved(name) {
			return refuse(CodeReservedExtension, fmt.Sprintf("%q is an attribute of the event itself", name))
		}
	}
	return nil
}

func refuse(code Code, detail string) *EventError { return &EventError{Code: code, Detail: detail} }

func validText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func validTopic(name string) bool {
	if len(name) > maxTopicBytes || name == "." || name == ".." {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

// reserved reports whether a header is written from a column.
func reserved(name string) bool {
	switch name {
	case cloudevent.HeaderID, cloudevent.HeaderSource, cloudevent.HeaderType, cloudevent.HeaderSpecVersion,
		cloudevent.HeaderTime, cloudevent.HeaderSubject, cloudevent.HeaderVersion, cloudevent.HeaderDataSchema,
		cloudevent.HeaderContentType, cloudevent.HeaderWatermillID, cloudevent.KeyMetadata, cloudevent.RecordMetadata:
		return true
	}
	return false
}

// headerBytes is what the headers written from columns add to a record: their names, two lengths each, the id twice
// (36), the time (27), the version (20), the content type and the record's own frame, rounded up.
const headerBytes = 470

// size is the record as the broker will count it, or a little more.
func (e Event) size() int {
	n := headerBytes + len(e.Data) + 2*len(e.Key) + len(e.Source) + len(e.Type) + len(e.DataSchema)
	for name, value := range e.Extensions {
		n += len(name) + len(value) + 10
	}
	return n
}

// envelope is the event as it will leave, apart from a number that is not known before the row is locked.
func (e Event) envelope() cloudevent.Event {
	return cloudevent.Event{
		ID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Key, Time: e.OccurredAt, Version: e.Version,
		DataSchema: e.DataSchema, Data: e.Data, Extensions: e.Extensions,
	}
}
