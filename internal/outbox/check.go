package outbox

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"example.com/twinbox/internal/event"
)

// The codes of an [EventError]. They are stable.
const (
	CodeInvalidEvent   = "invalid_event"   // the text names the attribute
	CodeInvalidPayload = "invalid_payload" // [Config.Validate] refused the payload
	CodeTooLarge       = "too_large"       // more than [Config.MaxEventBytes]
	CodeIDConflict     = "id_conflict"
)

// An EventError reports which event of a call cannot be added, and why. No event of the call was added. The transaction
// stays usable. The text never repeats the payload.
type EventError struct {
	Code   string
	Index  int
	Detail string
	Err    error // from [Config.Validate], else nil
}

func (e *EventError) Error() string {
	return fmt.Sprintf("add event %d: %s: %s", e.Index, e.Code, e.Detail)
}

func (e *EventError) Unwrap() error { return e.Err }

// Permanent returns true: the same event will be refused again.
func (e *EventError) Permanent() bool { return true }

// ErrorCode returns the code of a dead letter whose handler returned this error.
func (e *EventError) ErrorCode() string { return e.Code }

func invalid(detail string, args ...any) *EventError {
	return &EventError{Code: CodeInvalidEvent, Detail: fmt.Sprintf(detail, args...)}
}

func (o *Outbox) complete(e event.Event, cause event.Cause) event.Event {
	e.Extensions = cause.Extend(e.Extensions)
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	e.Source = cmp.Or(e.Source, o.cfg.Source)
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	return e
}

func (o *Outbox) check(e event.Event) *EventError {
	id, err := uuid.Parse(e.ID)
	switch {
	case err != nil || id.String() != e.ID || id == uuid.Nil: // one spelling only: consumers compare ids as text
		return invalid("the id is not a UUID in its canonical form")
	case e.Type == "" || !isText(e.Type):
		return invalid("the type is not text")
	case e.Source == "" || !isText(e.Source):
		return invalid("the source is not text")
	case !isTopicName(e.Topic):
		return invalid("the topic is not a topic name")
	case e.Key == "" || !isText(e.Key) || len(e.Key) > event.MaxKeyBytes:
		return invalid("the key is not text of 1 to %d bytes", event.MaxKeyBytes)
	case !isText(e.DataSchema):
		return invalid("the schema is not text")
	case e.Version < 0:
		return invalid("the version is negative")
	case e.Time.Before(event.Earliest) || !e.Time.Before(event.Latest):
		return invalid("the time is outside the years 2000 to 2199")
	case len(e.Data) == 0:
		return invalid("the payload is missing")
	}
	size := headerBytes + len(e.Data) + 2*len(e.Key) + len(e.Source) + len(e.Type) + len(e.DataSchema)
	for name, value := range e.Extensions {
		switch {
		case name == "" || !isText(name) || !isText(value):
			return invalid("an extension is unnamed or not text")
		case event.IsAttribute(name):
			return invalid("the extension %q is an attribute of the event itself", name)
		}
		size += len(name) + len(value) + 10
	}
	if size > o.cfg.MaxEventBytes {
		detail := fmt.Sprintf("%d bytes with headers, at most %d", size, o.cfg.MaxEventBytes)
		return &EventError{Code: CodeTooLarge, Detail: detail}
	}
	if err := o.cfg.Validate(e); err != nil {
		return &EventError{Code: CodeInvalidPayload, Detail: e.Type + ": " + err.Error(), Err: err}
	}
	return nil
}

// headerBytes bounds the headers written from columns: names and lengths, the id twice (36), the time (27), the version
// (20), the content type and the record's frame.
const headerBytes = 470

// isText reports whether PostgreSQL stores s as text: UTF-8 without NUL.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

const (
	maxTopicBytes   = 249 // Kafka's limit
	topicCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
)

func isTopicName(name string) bool {
	return name != "" && len(name) <= maxTopicBytes && name != "." && name != ".." &&
		strings.Trim(name, topicCharacters) == ""
}
