package deadletter

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// State is the state of a dead letter.
type State string

// The states. Only a waiting dead letter changes.
const (
	Waiting   State = "waiting"
	Replayed  State = "replayed" // see [Letter.Outcome]
	Discarded State = "discarded"
)

// ClassParked is the class of a dead letter that has not failed: it waits for an earlier record of its key.
const ClassParked = "parked"

// Kind is the audit's kind of a dead letter; the subject is the decimal ID.
const Kind = "dead_letter"

// Header is one record header.
type Header = event.Header

// Letter is a record that a consumer gave up or parked. In a list, key and error are cut, headers and payload absent.
type Letter struct {
	ID        int64  `json:"id"`
	Consumer  string `json:"consumer"`
	EventID   string `json:"event_id"` // else topic/partition/offset
	Type      string `json:"type"`
	Version   int64  `json:"version"` // 0: none
	Key       Key    `json:"key"`
	Bytes     int    `json:"bytes"` // of the payload
	Group     string `json:"-"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`

	RecordTime time.Time `json:"-"`
	EditedBy   string    `json:"edited_by,omitempty"`
	EditedAt   time.Time `json:"edited_at,omitzero"`

	Class         string    `json:"class"`
	Code          string    `json:"code"` // stable
	Error         string    `json:"error"`
	Attempts      int       `json:"attempts"`
	FirstFailedAt time.Time `json:"first_failed_at"`
	FailedAt      time.Time `json:"failed_at"`

	State      State     `json:"state"`
	Holds      bool      `json:"holds"`   // later events of its key park
	Remembered bool      `json:"-"`       // its event was new
	Replays    int       `json:"replays"` // failed ones
	Outcome    string    `json:"outcome,omitempty"`
	SettledAt  time.Time `json:"settled_at,omitzero"` // zero while it waits

	// The original record and its edited parts. Null is empty. Names of headers are text.
	Payload       []byte   `json:"payload,omitzero"`
	EditedPayload []byte   `json:"edited_payload,omitzero"`
	Headers       []Header `json:"headers,omitzero"`
	EditedHeaders []Header `json:"-"`
}

// Key is a record key. Its text replaces invalid bytes.
type Key []byte

func (k Key) String() string { return strings.ToValidUTF8(string(k), "\uFFFD") }

// MarshalText implements [encoding.TextMarshaler].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Key) UnmarshalText(text []byte) error {
	*k = bytes.Clone(text)
	return nil
}

// IsEdited reports whether an operator has edited the record.
func (l Letter) IsEdited() bool { return !l.EditedAt.IsZero() }

// Current returns the record to replay, with its edits.
func (l Letter) Current() (headers []Header, payload []byte) {
	if l.IsEdited() {
		return l.EditedHeaders, l.EditedPayload
	}
	return l.Headers, l.Payload
}

// CorrelationID returns the record's correlation id, or the event's id.
func (l Letter) CorrelationID() string {
	e := event.Event{ID: l.EventID, Extensions: make(map[string]string, len(l.Headers))}
	for _, h := range l.Headers {
		e.Extensions[h.Name] = string(h.Value)
	}
	return e.CorrelationID()
}

// Parked reports whether the dead letter waits without having failed.
func (l Letter) Parked() bool { return l.Class == ClassParked }

// KeyStart returns the column key_start, which orders dead letters: an index has a limit.
func KeyStart(key []byte) []byte { return key[:min(len(key), event.MaxKeyBytes)] }

// CopyTopic returns the topic for copies.
func CopyTopic(group, topic string) string { return event.CopyPrefix + group + "." + topic }

// CopyType is the event type of a copy.
const CopyType = "twinbox.dead-letter.v1"

// copiedPrefix begins the record's attributes in a copy, such as dlq_ce_type.
const copiedPrefix = "dlq_"

// Copy returns the dead letter as an event for other tools, written by source. It has its own id and type, and follows
// from the dead event. Its payload is the record's, or null for an empty one; its key the record's, or the event's id
// if that is not a valid key. Headers that are text stay, attributes with the prefix dlq_. The reason has the header
// names of KIP-1191.
func (l Letter) Copy(source string) event.Event {
	headers := map[string]string{}
	for _, h := range l.Headers {
		name, value := h.Name, string(h.Value)
		if event.IsAttribute(name) || name == event.HeaderCausationID {
			name = copiedPrefix + name
		}
		if name != "" && failure.Text(name) == name && failure.Text(value) == value {
			headers[name] = value
		}
	}
	maps.Copy(headers, map[string]string{
		event.HeaderCorrelationID:     l.CorrelationID(),
		event.HeaderCausationID:       l.EventID,
		"__dlq.errors.topic":          l.Topic,
		"__dlq.errors.partition":      strconv.Itoa(int(l.Partition)),
		"__dlq.errors.offset":         strconv.FormatInt(l.Offset, 10),
		"__dlq.errors.group":          l.Group,
		"__dlq.errors.delivery.count": strconv.Itoa(l.Attempts),
		"__dlq.errors.message":        failure.Cut(l.Error, maxMessage),
		"dlq_error_class":             l.Class,
		"dlq_error_code":              l.Code,
		"dlq_attempts":                strconv.Itoa(l.Attempts),
		"dlq_first_failed_at":         l.FirstFailedAt.UTC().Format(time.RFC3339Nano),
		"dlq_replay_count":            strconv.Itoa(l.Replays),
		"dlq_handler":                 l.Consumer,
	})
	e := event.Event{
		Source: source, Type: CopyType, Topic: CopyTopic(l.Group, l.Topic), Key: string(l.Key), Data: l.Payload,
		Extensions: headers,
	}
	if e.Key == "" || len(e.Key) > event.MaxKeyBytes || failure.Text(e.Key) != e.Key {
		e.Key = l.EventID
	}
	if len(e.Data) == 0 {
		e.Data = []byte("null")
	}
	return e
}

const maxMessage = 950 // bytes of the copy's error, 1000 with the note; the row has failure.MaxText
