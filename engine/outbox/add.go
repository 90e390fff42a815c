package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// insert adds the batch, apart from what has been added before under a given id.
func (o *Outbox) insert(ctx context.Context, tx pgx.Tx, b *batch) ([]Added, error) {
	err := b.withSavepoint(ctx, tx, func(tx pgx.Tx) error {
		if len(b.given) > 0 {
			rows, _ := tx.Query(ctx, recordIDsSQL, b.givenIDs()...)
			repeated, err := o.readRepeated(rows, b.given)
			if err == nil && len(repeated) > 0 {
				err = b.drop(repeated)
			}
			if err != nil || len(b.events) == 0 {
				return err
			}
		}
		return o.insertEvents(ctx, tx, b)
	})
	if err != nil {
		return nil, err
	}
	return b.added, nil
}

func (o *Outbox) insertEvents(ctx context.Context, tx pgx.Tx, b *batch) error {
	rows, _ := tx.Query(ctx, b.sql(), b.args()...)
	inserted := 0 // the statement returns the rows in the order in which it inserts them, that of the call
	var position, version int64
	_, err := pgx.ForEachRow(rows, []any{&position, &version}, func() error {
		b.added[b.index[inserted]] = Added{ID: b.events[inserted].ID, Version: version, Position: position}
		inserted++
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return o.checkInserted(b, inserted)
}

// checkInserted counts the events, if they were all inserted, and says what the transaction adds, if it commits.
func (o *Outbox) checkInserted(b *batch, inserted int) error {
	if inserted != len(b.events) {
		return ErrVersionConflict
	}
	for _, k := range b.keys {
		o.added.WithLabelValues(k.topic).Add(float64(k.events))
	}
	if o.cfg.Log.Enabled(context.Background(), slog.LevelDebug) {
		for i := range b.events {
			e := &b.events[i]
			o.cfg.Log.Debug("event added", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic)
		}
	}
	return nil
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
	b := &batch{added: make([]Added, 1)}
	b.append(0, complete(e, "", o.cfg.Now(), cloudevent.Cause{}))
	if err := b.countKeys(); err != nil {
		return err
	}
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
	sql, args, repeated := one.sql(), one.args(), false
	if len(one.given) > 0 {
		b.Queue(recordIDsSQL, one.givenIDs()...).Query(func(rows pgx.Rows) error {
			found, err := o.readRepeated(rows, one.given)
			repeated = len(found) > 0
			return err
		})
		sql, args = insertGivenSQL, one.givenArgs()
	}
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if repeated {
			return nil
		}
		return o.checkInserted(one, int(tag.RowsAffected()))
	})
	return nil
}

// OnConflict says what happens to an event whose id, given by the caller, belongs to another event already.
type OnConflict string

// The values of [Config.OnConflict].
const (
	ConflictError OnConflict = "error" // it is refused with [CodeIDConflict]
	ConflictWarn  OnConflict = "warn"  // it is added and logged; consumers refuse one of the two, not all the same one
)

// given is the event under an id that the caller gave.
type given struct {
	index   int // in the call
	content []byte
}

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

// giveID notes the id that the caller gave an event, and reports whether the call has the event already.
func (o *Outbox) giveID(b *batch, i int, e cloudevent.Event) (repeated bool, err *EventError) {
	content := contentOf(e)
	earlier, twice := b.given[e.ID]
	switch {
	case twice && bytes.Equal(earlier.content, content):
		return true, nil
	case twice:
		return false, o.checkConflict(i, e.ID)
	case b.given == nil:
		b.given = make(map[string]given, 1)
	}
	b.given[e.ID] = given{i, content}
	return false, nil
}

// checkConflict refuses an event under another one's id, or lets it pass.
func (o *Outbox) checkConflict(index int, id string) *EventError {
	if o.cfg.OnConflict == ConflictWarn {
		o.cfg.Log.Warn("event id added again with another content", "event_id", id)
		return nil
	}
	return &EventError{
		Code: CodeIDConflict, Index: index,
		Detail: "the id " + id + " belongs to an event with another source, type, topic, key, version or payload",
	}
}

// recordIDsSQL makes the transaction the owner of ids, in their order. Of two transactions the second one waits here
// until the first has ended, and then sees its row, which a plain select of the same statement would not; in a
// transaction with an older snapshot it fails with 40001.
const recordIDsSQL = `
insert into public.outbox_given_id as g (event_id, content)
select e.id::uuid, e.content from unnest($1::text[], $2::bytea[]) as e (id, content) order by e.id::uuid
on conflict (event_id) do update set repeats = g.repeats + 1
returning g.event_id::text, g.content, g.repeats`

// givenIDs are the arguments of recordIDsSQL.
func (b *batch) givenIDs() []any {
	ids, contents := make([]string, 0, len(b.given)), make([][]byte, 0, len(b.given))
	for id, g := range b.given {
		ids, contents = append(ids, id), append(contents, g.content)
	}
	return []any{ids, contents}
}

// readRepeated returns the ids under which the same event has been added before.
func (o *Outbox) readRepeated(rows pgx.Rows, ids map[string]given) (repeated map[string]bool, err error) {
	repeated = map[string]bool{}
	var conflict *EventError
	var id string
	var content []byte
	var repeats int
	_, err = pgx.ForEachRow(rows, []any{&id, &content, &repeats}, func() error {
		switch g := ids[id]; {
		case repeats == 0:
		case bytes.Equal(content, g.content):
			repeated[id] = true
		case conflict == nil || g.index < conflict.Index:
			conflict = cmp.Or(o.checkConflict(g.index, id), conflict)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record given ids: %w", err)
	}
	if conflict != nil {
		return nil, conflict
	}
	return repeated, nil
}
