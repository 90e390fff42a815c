package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// Added is what became of an event.
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
	CodeInvalidName       Code = "invalid_name"    // of a scheduled event
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

// ErrVersionConflict means that an event's Version was not its key's next number: another event was added since
// the caller read the aggregate. Nothing of the call was added. The transaction stays usable, but what it has
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

// complete fills in what the caller has left out.
func complete(e cloudevent.Event, source string, now time.Time, cause cloudevent.Cause) cloudevent.Event {
	e.Extensions = cause.Extend(e.Extensions)
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	e.Source = cmp.Or(e.Source, source)
	if e.Time.IsZero() {
		e.Time = now
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	return e
}

// checkEvent finds what the database, the broker or a consumer would refuse later, when the caller is gone.
func checkEvent(e cloudevent.Event, maxBytes int) *EventError {
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
	case e.Time.Before(earliest) || !e.Time.Before(latest):
		return refuse(CodeInvalidTime, "outside the years 2000 to 2199")
	case len(e.Data) == 0:
		return refuse(CodeMissingData, "no payload")
	}
	if err := checkText(e); err != nil {
		return err
	}
	if size := sizeOf(e); size > maxBytes {
		return refuse(CodeTooLarge, fmt.Sprintf("%d bytes with headers, at most %d", size, maxBytes))
	}
	return nil
}

func checkText(e cloudevent.Event) *EventError {
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
		alphabetic := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !alphabetic && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
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

// sizeOf is the record as the broker will count it, or a little more.
func sizeOf(e cloudevent.Event) int {
	n := headerBytes + len(e.Data) + 2*len(e.Key) + len(e.Source) + len(e.Type) + len(e.DataSchema)
	for name, value := range e.Extensions {
		n += len(name) + len(value) + 10
	}
	return n
}
