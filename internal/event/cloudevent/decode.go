package cloudevent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Code names one way in which a record is not an event. The names are stable: dead letters are grouped by them.
type Code string

// The codes of a [DecodeError].
const (
	CodeMissingID       Code = "missing_id"
	CodeInvalidID       Code = "invalid_id" // too long, or not printable UTF-8
	CodeMissingType     Code = "missing_type"
	CodeMissingSource   Code = "missing_source"
	CodeMissingKey      Code = "missing_key"
	CodeInvalidKey      Code = "invalid_key"    // too long
	CodeKeyMismatch     Code = "key_mismatch"   // the record key is not the subject
	CodeInvalidHeader   Code = "invalid_header" // an attribute is not text
	CodeInvalidTime     Code = "invalid_time"
	CodeInvalidVersion  Code = "invalid_version"
	CodeUnsupportedSpec Code = "unsupported_spec_version"
	CodeStructuredMode  Code = "structured_mode" // the attributes are in the payload
	CodeEmptyValue      Code = "empty_value"
	CodeUnreadable      Code = "unreadable" // damaged on the log, see [Origin]
)

// A DecodeError says why a record is not an event. It is permanent: the same bytes will never decode.
type DecodeError struct {
	Code   Code
	Detail string
}

func (e *DecodeError) Error() string { return fmt.Sprintf("decode event: %s: %s", e.Code, e.Detail) }

// ErrorCode is the code as text: the name under which a dead letter is filed.
func (e *DecodeError) ErrorCode() string { return string(e.Code) }

// Business times from Earliest to Latest, the latter not included, are believed. A producer's clock outside them is a
// defect, and PostgreSQL could not partition by such a time.
var (
	Earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	Latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// FromMessage reads the envelope back from a Watermill message. The payload is not looked at, apart from being there:
// whether it fits its schema is the contract's business. A message without [Origin], whose subscriber has a marshaler
// of its own, has its id in [HeaderID] and its key in [HeaderSubject].
//
// Headers that are not attributes become extensions, byte for byte: their names and values need not be text. A trace
// header that is not text is left out. An event without ce_time gets the time at which its record was appended, or the
// current time if that is unknown.
//
// The error is always a [*DecodeError]. The event is returned even then, filled as far as it could be read, so that
// a dead letter can say what it knows.
func FromMessage(m *message.Message) (Event, error) {
	e := Event{
		ID:         cmp.Or(m.Metadata[HeaderID], m.UUID),
		Source:     m.Metadata[HeaderSource],
		Type:       m.Metadata[HeaderType],
		Key:        m.Metadata[HeaderSubject],
		DataSchema: m.Metadata[HeaderDataSchema],
		Time:       readTime(m),
		Data:       m.Payload,
	}
	for name, value := range m.Metadata {
		isTrace := name == HeaderTraceParent || name == HeaderTraceState
		if IsAttribute(name) || isTrace && !isText(value) {
			continue
		}
		if e.Extensions == nil {
			e.Extensions = make(map[string]string, 2)
		}
		e.Extensions[name] = value
	}
	if version, err := strconv.ParseInt(m.Metadata[HeaderVersion], 10, 64); err == nil && version > 0 {
		e.Version = version
	}
	return e, e.check(m)
}

// readTime returns the time of the event; zero if its ce_time is invalid.
func readTime(m *message.Message) time.Time {
	text := m.Metadata[HeaderTime]
	if text == "" {
		if origin, ok := OriginFrom(m.Context()); ok && isBelieved(origin.Time) {
			return origin.Time.UTC()
		}
		return time.Now().UTC()
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)) // t and z are as good as T and Z
	if err != nil || !isBelieved(at) {
		return time.Time{}
	}
	return at.UTC()
}

func isBelieved(at time.Time) bool { return !at.Before(Earliest) && at.Before(Latest) }

// isText reports whether a text column of PostgreSQL takes the value: NUL is valid UTF-8 and is refused there.
func isText(value string) bool { return utf8.ValidString(value) && strings.IndexByte(value, 0) < 0 }

// structuredMode begins the media types of events whose attributes are in the payload.
const structuredMode = "application/cloudevents"

// check returns the first of its problems in the order in which a reader would want to hear of them.
func (e *Event) check(m *message.Message) error {
	if origin, ok := m.Context().Value(originKey{}).(*Origin); ok && origin.Unreadable != nil {
		detail := fmt.Sprintf("offsets %d to %d: %v", origin.Offset, origin.LastOffset, origin.Unreadable)
		if kept := len(origin.Damaged); kept < origin.DamagedSize {
			detail += fmt.Sprintf(" (kept: the first %d of %d bytes)", kept, origin.DamagedSize)
		}
		return &DecodeError{CodeUnreadable, detail}
	}
	if mediaType := strings.ToLower(m.Metadata[HeaderContentType]); strings.HasPrefix(mediaType, structuredMode) {
		return &DecodeError{CodeStructuredMode, "the structured content mode of CloudEvents is not supported; " +
			"send the attributes as ce_ headers (binary content mode)"}
	}
	if err := ValidID(e.ID); err != nil {
		return err
	}
	key, hasKey := m.Metadata[KeyMetadata]
	if _, isRecord := OriginFrom(m.Context()); !hasKey && !isRecord {
		key = e.Key // of a subscriber that hands over no keys
	}
	spec := m.Metadata[HeaderSpecVersion]
	switch {
	case spec != SpecVersion:
		return &DecodeError{CodeUnsupportedSpec, fmt.Sprintf("%q, want %q", spec, SpecVersion)}
	case !isText(e.Type) || !isText(e.Source) || !isText(e.Key) || !isText(e.DataSchema):
		return &DecodeError{CodeInvalidHeader, "ce_type, ce_source, ce_subject or ce_dataschema is not text"}
	case e.Type == "":
		return &DecodeError{CodeMissingType, "no ce_type"}
	case e.Source == "":
		return &DecodeError{CodeMissingSource, "no ce_source"}
	case key == "" || e.Key == "":
		return &DecodeError{CodeMissingKey, "no record key or no ce_subject"}
	case len(key) > MaxKeyBytes:
		return &DecodeError{CodeInvalidKey, fmt.Sprintf("%d bytes, at most %d", len(key), MaxKeyBytes)}
	case key != e.Key:
		return &DecodeError{CodeKeyMismatch, "the record key is not ce_subject"}
	case e.Time.IsZero():
		return &DecodeError{CodeInvalidTime, "ce_time is not RFC 3339, or outside the years 2000 to 2199"}
	case e.Version == 0 && m.Metadata[HeaderVersion] != "":
		return &DecodeError{CodeInvalidVersion, "ce_aggregateversion is not a positive number"}
	case len(e.Data) == 0:
		return &DecodeError{CodeEmptyValue, "the record has no value"}
	}
	return nil
}

// IsAttribute reports whether a name of metadata is the event's own, rather than an extension's: written from a field
// of the [Event], or transport state.
func IsAttribute(name string) bool {
	switch name {
	case HeaderID, HeaderSource, HeaderType, HeaderSpecVersion, HeaderTime, HeaderSubject, HeaderVersion,
		HeaderDataSchema, HeaderContentType, HeaderWatermillID, KeyMetadata:
		return true
	}
	return false
}

// ValidID reports whether an inbox can remember the id: not empty, valid UTF-8 of at most [MaxIDLength] characters, and
// free of control characters, which PostgreSQL (NUL) or a terminal would refuse. Its error is a [*DecodeError].
func ValidID(id string) error {
	isControl := func(r rune) bool { return r < 0x20 || r == 0x7f }
	switch n := utf8.RuneCountInString(id); {
	case id == "":
		return &DecodeError{CodeMissingID, "the record carries no event id"}
	case !utf8.ValidString(id), strings.ContainsFunc(id, isControl):
		return &DecodeError{CodeInvalidID, "not printable UTF-8"}
	case n > MaxIDLength:
		return &DecodeError{CodeInvalidID, fmt.Sprintf("%d characters, at most %d", n, MaxIDLength)}
	}
	return nil
}
