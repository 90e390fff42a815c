package cloudevent

import (
	"errors"
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
	CodeInvalidKey      Code = "invalid_key"  // too long
	CodeKeyMismatch     Code = "key_mismatch" // the record key is not the subject
	CodeInvalidHeader   Code = "invalid_header"
	CodeInvalidTime     Code = "invalid_time"
	CodeInvalidVersion  Code = "invalid_version"
	CodeUnsupportedSpec Code = "unsupported_spec_version"
	CodeStructuredMode  Code = "structured_mode"
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

// Earliest and latest business times that are believed. A producer's clock outside them is a defect, and PostgreSQL
// could not partition by such a time.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// FromMessage reads the envelope back from a Watermill message. The payload is not looked at, apart from being there:
// whether it fits its schema is the contract's business.
//
// The error is always a [*DecodeError]. The event is returned even then, filled as far as it could be read, so that
// a dead letter can say what it knows.
func FromMessage(m *message.Message) (Event, error) {
	e := Event{
		ID:         m.UUID,
		Source:     m.Metadata[HeaderSource],
		Type:       m.Metadata[HeaderType],
		Key:        m.Metadata[HeaderSubject],
		DataSchema: m.Metadata[HeaderDataSchema],
		Data:       m.Payload,
	}
	var textErr *DecodeError
	for name, value := range m.Metadata {
		extends := !isAttribute(name)
		if extends {
			if e.Extensions == nil {
				e.Extensions = make(map[string]string, 2)
			}
			e.Extensions[name] = value
		}
		if extends && !utf8.ValidString(name) || !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			// NUL is valid UTF-8, but no text column of PostgreSQL takes it.
			textErr = &DecodeError{CodeInvalidHeader, fmt.Sprintf("header %q is not text", name)}
		}
	}
	timeErr := e.readTime(m.Metadata[HeaderTime])
	versionErr := e.readVersion(m.Metadata[HeaderVersion])
	if err := e.check(m, textErr, timeErr, versionErr); err != nil {
		return e, err
	}
	return e, nil
}

// check returns the first of its problems in the order in which a reader would want to hear of them.
func (e *Event) check(m *message.Message, textErr, timeErr, versionErr *DecodeError) *DecodeError {
	key, spec := m.Metadata[KeyMetadata], m.Metadata[HeaderSpecVersion]
	if origin, ok := m.Context().Value(originKey{}).(*Origin); ok && origin.Unreadable != nil {
		return unreadable(origin)
	}
	if err, _ := errors.AsType[*DecodeError](ValidID(e.ID)); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(m.Metadata[HeaderContentType], "application/cloudevents"):
		return &DecodeError{CodeStructuredMode, "only the binary content mode is supported"}
	case spec != SpecVersion:
		return &DecodeError{CodeUnsupportedSpec, fmt.Sprintf("%q, want %q", spec, SpecVersion)}
	case textErr != nil:
		return textErr
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
	case timeErr != nil:
		return timeErr
	case versionErr != nil:
		return versionErr
	case len(e.Data) == 0:
		return &DecodeError{CodeEmptyValue, "the record has no value"}
	}
	return nil
}

func unreadable(origin *Origin) *DecodeError {
	detail := fmt.Sprintf("offsets %d to %d: %v", origin.Offset, origin.LastOffset, origin.Unreadable)
	if kept := len(origin.Damaged); kept < origin.DamagedSize {
		detail += fmt.Sprintf(" (kept: the first %d of %d bytes)", kept, origin.DamagedSize)
	}
	return &DecodeError{Code: CodeUnreadable, Detail: detail}
}

func isAttribute(name string) bool {
	switch name {
	case HeaderID, HeaderSource, HeaderType, HeaderSpecVersion, HeaderTime, HeaderSubject, HeaderVersion,
		HeaderDataSchema, HeaderContentType, HeaderWatermillID, KeyMetadata:
		return true
	}
	return false
}

// ValidID reports whether an inbox can remember the id: not empty, valid UTF-8 of at most [MaxIDLength] characters, and
// free of control characters, which PostgreSQL (NUL) or a terminal would refuse.
func ValidID(id string) error {
	switch {
	case id == "":
		return &DecodeError{CodeMissingID, "the record carries no event id"}
	case !utf8.ValidString(id), strings.ContainsFunc(id, isControl):
		return &DecodeError{CodeInvalidID, "not printable UTF-8"}
	case utf8.RuneCountInString(id) > MaxIDLength:
		n := utf8.RuneCountInString(id)
		return &DecodeError{CodeInvalidID, fmt.Sprintf("%d characters, at most %d", n, MaxIDLength)}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func (e *Event) readTime(text string) *DecodeError {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return &DecodeError{CodeInvalidTime, "ce_time is not RFC 3339"}
	}
	if t.Before(earliest) || !t.Before(latest) {
		return &DecodeError{CodeInvalidTime, "ce_time is outside the years 2000 to 2199"}
	}
	e.Time = t.UTC()
	return nil
}

func (e *Event) readVersion(text string) *DecodeError {
	if text == "" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 1 {
		return &DecodeError{CodeInvalidVersion, "ce_aggregateversion is not a positive number"}
	}
	e.Version = v
	return nil
}
