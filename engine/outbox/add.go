package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

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
	b, err := o.batch(events, cloudevent.CauseFrom(ctx))
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
			if err := o.dropRepeated(rows, b); err != nil || len(b.events) == 0 {
				return err
			}
		}
		sql, args, err := b.statement()
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, sql, args...)
		return o.readInserted(rows, b)
	}
	var err error
	if len(b.given) > 0 || len(b.events) > 1 && b.conditional {
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
	encoded, err := wire.Encode()
	if err != nil {
		return refuse(CodeInvalidText, "the headers cannot be encoded")
	}
	e := cloudevent.Event{
		Source: "/", Type: recordType, Topic: topic, Key: string(wire.Key), Data: value,
		Extensions: map[string]string{cloudevent.RecordMetadata: encoded},
	}
	if e.Key == "" || len(e.Key) > maxKeyBytes || !validText(e.Key) { // what the table orders by is text
		ordered := wire.Key
		if len(ordered) == 0 {
			ordered = value
		}
		sum := sha256.Sum256(ordered)
		e.Key = hex.EncodeToString(sum[:])
	}
	if e.Data == nil {
		e.Data = []byte{}
	}
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
	b := &batch{}
	b.append(complete(e, "", o.cfg.Now(), cloudevent.Cause{}), nil)
	_, err = o.insert(ctx, tx, b)
	return err
}

// Queue is [Outbox.Add] for one event whose insert travels with other statements: it adds the insert to a batch, which
// the caller sends on its transaction. What holds for Add holds for the event once the batch is through.
//
// Errors: [*EventError] at once, with nothing queued. [ErrVersionConflict] comes from the batch's results, as do the
// database's errors and the [*EventError] of an id that belongs to another event; what the batch held behind the event
// may have run by then, so the transaction must be rolled back.
func (o *Outbox) Queue(ctx context.Context, b *pgx.Batch, event cloudevent.Event) error {
	one, err := o.batch([]cloudevent.Event{event}, cloudevent.CauseFrom(ctx))
	if err != nil {
		return err
	}
	sql, args, err := one.statement()
	if len(one.given) > 0 {
		b.Queue(recordIDsSQL, one.ids()...).Query(func(rows pgx.Rows) error { return o.dropRepeated(rows, one) })
		sql, args = insertGivenSQL, append(args, one.contents[0])
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error { return o.readInserted(rows, one) })
	return err
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
// version that the caller names is a part: the third event of a key is not its fourth.
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

// checkConflict refuses an event under another one's id, or lets it pass.
func (o *Outbox) checkConflict(index int, id string) error {
	if o.cfg.OnConflict == ConflictWarn {
		o.cfg.Log.Warn("event id added again with another content", "event_id", id)
		return nil
	}
	return &EventError{
		Code: CodeIDConflict, Index: index,
		Detail: "the id " + id + " belongs to an event with another source, type, topic, key, version or payload",
	}
}
