package event

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Code is the stable reason of a [ContractError].
type Code string

// The codes of a record that is not an event.
const (
	CodeMissingID       Code = "missing_id"
	CodeInvalidID       Code = "invalid_id" // too long, or not printable UTF-8
	CodeMissingType     Code = "missing_type"
	CodeMissingSource   Code = "missing_source"
	CodeMissingKey      Code = "missing_key"
	CodeInvalidKey      Code = "invalid_key"
	CodeKeyMismatch     Code = "key_mismatch" // the record key is not the subject
	CodeInvalidHeader   Code = "invalid_header"
	CodeInvalidTime     Code = "invalid_time"
	CodeInvalidVersion  Code = "invalid_version"
	CodeUnsupportedSpec Code = "unsupported_spec_version"
	CodeStructuredMode  Code = "structured_mode" // the attributes are in the payload
	CodeEmptyValue      Code = "empty_value"
)

// A ContractError is why a record is not an event, or breaks the contract. It is permanent, and has no values of the
// payload.
type ContractError struct {
	Code   Code
	Detail string
}

func (e *ContractError) Error() string { return fmt.Sprintf("check event: %s: %s", e.Code, e.Detail) }

// Permanent returns true.
func (e *ContractError) Permanent() bool { return true }

// ErrorCode returns the code of the dead letter.
func (e *ContractError) ErrorCode() string { return string(e.Code) }

// Earliest is the first business time; Latest is excluded. PostgreSQL cannot partition by other times.
var (
	Earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	Latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// FromMessage reads the envelope of a message, not its payload. Without ce_time, the time is that of the record, else
// the current one. The error is a [*ContractError]; the event then has the readable parts.
func FromMessage(m *message.Message) (Event, error) {
	e := Event{
		ID:         cmp.Or(m.Metadata[HeaderID], m.UUID),
		Source:     m.Metadata[HeaderSource],
		Type:       m.Metadata[HeaderType],
		Key:        m.Metadata[HeaderSubject],
		DataSchema: m.Metadata[HeaderDataSchema],
		Time:       timeOf(m),
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

// timeOf returns the event's time; zero if its ce_time is invalid.
func timeOf(m *message.Message) time.Time {
	text := m.Metadata[HeaderTime]
	if text == "" {
		if origin, ok := OriginFrom(m.Context()); ok && isValidTime(origin.Time) {
			return origin.Time.UTC()
		}
		return time.Now().UTC()
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil || !isValidTime(at) {
		return time.Time{}
	}
	return at.UTC()
}

func isValidTime(at time.Time) bool { return !at.Before(Earliest) && at.Before(Latest) }

func isText(value string) bool { return utf8.ValidString(value) && strings.IndexByte(value, 0) < 0 }

const structuredMode = "application/cloudevents"

func (e *Event) check(m *message.Message) error {
	_, isRecord := OriginFrom(m.Context())
	if mediaType := strings.ToLower(m.Metadata[HeaderContentType]); strings.HasPrefix(mediaType, structuredMode) {
		return &ContractError{CodeStructuredMode, "the structured content mode of CloudEvents is not supported; " +
			"send the attributes as ce_ headers (binary content mode)"}
	}
	if err := ValidID(e.ID); err != nil {
		return err
	}
	key, hasKey := m.Metadata[KeyMetadata]
	if !hasKey && !isRecord {
		key = e.Key // the subscriber passes on no keys
	}
	spec := m.Metadata[HeaderSpecVersion]
	switch {
	case spec == "":
		return &ContractError{CodeUnsupportedSpec, "no ce_specversion: the record is not a CloudEvent in binary mode"}
	case spec != SpecVersion:
		return &ContractError{CodeUnsupportedSpec, fmt.Sprintf("ce_specversion is %q, want %q", spec, SpecVersion)}
	case !isText(e.Type) || !isText(e.Source) || !isText(e.Key) || !isText(e.DataSchema):
		return &ContractError{CodeInvalidHeader, "ce_type, ce_source, ce_subject or ce_dataschema is not text"}
	case e.Type == "":
		return &ContractError{CodeMissingType, "no ce_type"}
	case e.Source == "":
		return &ContractError{CodeMissingSource, "no ce_source"}
	case e.Key == "":
		return &ContractError{CodeMissingKey, "no ce_subject"}
	case key == "":
		return &ContractError{CodeMissingKey, "no record key: it has to be ce_subject"}
	case len(key) > MaxKeyBytes:
		return &ContractError{CodeInvalidKey, fmt.Sprintf("%d bytes, at most %d", len(key), MaxKeyBytes)}
	case key != e.Key:
		return &ContractError{CodeKeyMismatch, "the record key is not ce_subject"}
	case e.Time.IsZero():
		return &ContractError{CodeInvalidTime, "ce_time is not RFC 3339, or outside the years 2000 to 2199"}
	case e.Version == 0 && m.Metadata[HeaderVersion] != "":
		return &ContractError{CodeInvalidVersion, "ce_aggregateversion is not a positive number"}
	case len(e.Data) == 0:
		return &ContractError{CodeEmptyValue, "the record has no value"}
	}
	return nil
}

// ValidID returns a [*ContractError] unless the id has 1 to [MaxIDLength] characters of UTF-8, no control characters.
func ValidID(id string) error {
	isControl := func(r rune) bool { return r < 0x20 || r == 0x7f }
	switch n := utf8.RuneCountInString(id); {
	case id == "":
		return &ContractError{CodeMissingID, "the record carries no event id"}
	case !utf8.ValidString(id), strings.ContainsFunc(id, isControl):
		return &ContractError{CodeInvalidID, "not printable UTF-8"}
	case n > MaxIDLength:
		return &ContractError{CodeInvalidID, fmt.Sprintf("%d characters, at most %d", n, MaxIDLength)}
	}
	return nil
}
