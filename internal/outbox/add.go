package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
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

// Add adds the events to the caller's transaction, in one statement. They are published after it commits, those of one
// key and topic in the order of their versions, and never if it does not.
//
// It locks the events' keys until the transaction ends, in the order of topic and key, takes each key's next numbers
// and inserts. Two transactions that call it more than once for several keys each may deadlock, like any two that lock
// rows in different orders; PostgreSQL then ends one with 40P01.
//
// An event with an id that the caller gives is added once: the same event again, in this call, this transaction or any
// later one, adds nothing ([Added.Repeated]); another event under the id is refused with [CodeIDConflict], or added and
// logged, as [Config.OnConflict] says. What makes it the same are source, type, topic, key, payload and the version, if
// it is named. An id is remembered for relay.Config.IDRetention. While a transaction that gave an id is open, others
// that give the same id wait for its end. It costs a savepoint and a statement; ids made here cost nothing.
//
// Under the context of an inbox handler, events carry on the trace and the correlation id of the handled event, and its
// id as their causation id.
//
// Errors: [*EventError] with nothing added, [ErrVersionConflict] with nothing added, else the database's.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...cloudevent.Event) ([]Added, error) {
	if len(events) == 0 {
		return nil, nil
	}
	b, err := o.batch(ctx, events)
	if err != nil {
		return nil, err
	}
	return o.insert(ctx, tx, b)
}

// insert adds the batch, in a savepoint if some of it could be done and not the rest: a conflict must leave nothing
// behind, even if the caller commits nevertheless. Id, lock, number and row share the savepoint, so a rollback to it
// takes back all four.
func (o *Outbox) insert(ctx context.Context, tx pgx.Tx, b *batch) ([]Added, error) {
	add := func(tx pgx.Tx) error {
		if len(b.given) > 0 {
			rows, _ := tx.Query(ctx, recordIDsSQL, b.ids()...)
			if err := o.dropRepeated(rows, b); err != nil {
				return err
			}
		}
		if len(b.items) == 0 {
			return nil
		}
		sql, args := b.statement()
		rows, _ := tx.Query(ctx, sql, args...)
		return o.readInserted(rows, b)
	}
	var err error
	if len(b.given) > 0 || len(b.items) > 1 && b.conditional {
		err = pgx.BeginFunc(ctx, tx, add)
	} else {
		err = add(tx)
	}
	if err != nil {
		return nil, err
	}
	return b.added, nil
}

// recordType is the type of a row that stands for another system's record.
const recordType = "record"

// AddRecord adds a record that is no event of this service, such as the copy of a dead letter: it is published with
// this key, these headers and this value, byte for byte, and nothing is added or checked but its topic and its size.
// Order and parking are as for events; records without a key are in order among those of the same value. It is not
// republished along with events; see [Selection].
//
// Errors: [*EventError] before anything is sent, else the database's.
func (o *Outbox) AddRecord(ctx context.Context, tx pgx.Tx, topic string, wire cloudevent.Wire, value []byte) error {
	size := headerBytes + len(value) + len(wire.Key)
	for _, h := range wire.Headers {
		size += len(h.Name) + len(h.Value) + 10
	}
	switch {
	case topic == "":
		return refuse(CodeMissingTopic, "no topic")
	case !validTopic(topic):
		return refuse(CodeInvalidTopic, "not a topic name")
	case size > o.cfg.MaxEventBytes:
		return refuse(CodeTooLarge, "the record is larger than an event may be")
	}
	key := string(wire.Key)
	if key == "" || len(key) > cloudevent.MaxKeyBytes || !validText(key) { // what the table orders by is text
		ordered := wire.Key
		if len(ordered) == 0 {
			ordered = value
		}
		key = fmt.Sprintf("%x", sha256.Sum256(ordered))
	}
	if value == nil {
		value = []byte{}
	}
	e := cloudevent.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/", Type: recordType, Topic: topic, Key: key, Data: value,
		Time: time.Now(), Extensions: map[string]string{cloudevent.RecordMetadata: wire.Encode()},
	}
	_, err := o.insert(ctx, tx, &batch{added: make([]Added, 1), items: []item{{Event: e}}})
	return err
}

// Queue is [Outbox.Add] for one event whose insert travels with other statements: it adds the insert to a batch, which
// the caller sends on its transaction. What holds for Add holds for the event once the batch is through.
//
// Errors: [*EventError] at once, with nothing queued. [ErrVersionConflict] comes from the batch's results, as do the
// database's errors and the [*EventError] of an id that belongs to another event; what the batch held behind the event
// may have run by then, so the transaction must be rolled back.
func (o *Outbox) Queue(ctx context.Context, b *pgx.Batch, event cloudevent.Event) error {
	one, err := o.batch(ctx, []cloudevent.Event{event})
	if err != nil {
		return err
	}
	sql, args := one.statement()
	if len(one.given) > 0 {
		b.Queue(recordIDsSQL, one.ids()...).Query(func(rows pgx.Rows) error { return o.dropRepeated(rows, one) })
		sql, args = insertGivenSQL, append(args, one.items[0].content)
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error { return o.readInserted(rows, one) })
	return nil
}

// OnConflict says what happens to an event whose id, given by the caller, belongs to another event already.
type OnConflict string

// The values of [Config.OnConflict].
const (
	ConflictError OnConflict = "error" // it is refused with [CodeIDConflict]
	ConflictWarn  OnConflict = "warn"  // it is added and logged; consumers refuse one of the two, not all the same one
)

// contentOf is a hash of what an event says. Time, schema and extensions are left out: a caller that repeats itself
// after an error whose outcome it does not know has another clock and another trace, and means the same event. A
// version that the caller names belongs to it, since the third event of a key is not its fourth.
func contentOf(e cloudevent.Event) []byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range []string{e.Source, e.Type, e.Topic, e.Key, strconv.FormatInt(e.Version, 10), string(e.Data)} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// prepare fills in what the caller has left out, and finds what the database, the broker or a consumer would refuse
// later, when the caller is gone.
func (o *Outbox) prepare(e cloudevent.Event, cause cloudevent.Cause) (cloudevent.Event, *EventError) {
	e.Extensions = cause.Extend(e.Extensions)
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	e.Source = cmp.Or(e.Source, o.cfg.Source)
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	id, err := uuid.Parse(e.ID)
	switch {
	case err != nil || id.String() != e.ID || id == uuid.Nil: // one spelling only: consumers compare ids as text
		return e, refuse(CodeInvalidID, "not a UUID in its canonical form")
	case e.Type == "":
		return e, refuse(CodeMissingType, "no type")
	case e.Source == "":
		return e, refuse(CodeMissingSource, "no source")
	case e.Topic == "":
		return e, refuse(CodeMissingTopic, "no topic")
	case !validTopic(e.Topic):
		return e, refuse(CodeInvalidTopic, "not a topic name")
	case e.Key == "":
		return e, refuse(CodeMissingKey, "no key")
	case len(e.Key) > cloudevent.MaxKeyBytes:
		return e, refuse(CodeInvalidKey, fmt.Sprintf("%d bytes, at most %d", len(e.Key), cloudevent.MaxKeyBytes))
	case e.Version < 0:
		return e, refuse(CodeInvalidVersion, "negative")
	case e.Time.Before(cloudevent.Earliest) || !e.Time.Before(cloudevent.Latest):
		return e, refuse(CodeInvalidTime, "outside the years 2000 to 2199")
	case len(e.Data) == 0:
		return e, refuse(CodeMissingData, "no payload")
	case !validText(e.Source) || !validText(e.Type) || !validText(e.Key) || !validText(e.DataSchema):
		return e, refuse(CodeInvalidText, "an attribute holds a NUL or is not UTF-8")
	}
	size := headerBytes + len(e.Data) + 2*len(e.Key) + len(e.Source) + len(e.Type) + len(e.DataSchema)
	for name, value := range e.Extensions {
		switch {
		case name == "" || !validText(name) || !validText(value):
			return e, refuse(CodeInvalidText, "an extension is unnamed, holds a NUL or is not UTF-8")
		case cloudevent.IsAttribute(name): // written from a column
			return e, refuse(CodeReservedExtension, fmt.Sprintf("%q is an attribute of the event itself", name))
		}
		size += len(name) + len(value) + 10
	}
	if size > o.cfg.MaxEventBytes {
		return e, refuse(CodeTooLarge, fmt.Sprintf("%d bytes with headers, at most %d", size, o.cfg.MaxEventBytes))
	}
	if err := o.cfg.Validate(e); err != nil {
		return e, &EventError{Code: CodeInvalidPayload, Detail: err.Error(), Err: err}
	}
	return e, nil
}

// headerBytes is what the headers written from columns add to a record, as the broker will count it, or a little more:
// their names, two lengths each, the id twice (36), the time (27), the version (20), the content type and the record's
// own frame, rounded up.
const headerBytes = 470

func refuse(code Code, detail string) *EventError { return &EventError{Code: code, Detail: detail} }

func validText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

const (
	maxTopicBytes   = 249 // Kafka's limit
	topicCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
)

func validTopic(name string) bool {
	return len(name) <= maxTopicBytes && name != "." && name != ".." && strings.Trim(name, topicCharacters) == ""
}
