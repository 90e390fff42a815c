package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// Added is the outcome of an event in a call of [Outbox.Add].
type Added struct {
	ID       string
	Version  int64 // the key's number in its topic
	Position int64 // of the row in the outbox; rows of other transactions lie in between
	Repeated bool  // the id was given before for this event: no row was added, Version and Position are 0
}

// ErrVersionConflict means that an event's Version was not its key's next number. No event of the call was added. The
// transaction stays usable, but its decisions rest on an old state: roll back, and read again.
var ErrVersionConflict = errors.New("outbox: version is not the key's next")

// Add adds the events to the caller's transaction, in one round trip. The relay publishes them after the commit, those
// of one key and topic in the order of their versions. It publishes none after a rollback.
//
// Add locks the keys of the events until the transaction ends, in the order of topic and key. Transactions with several
// calls may deadlock (40P01).
//
// An event without a version gets its key's next one. A version that the caller names must be the next one.
//
// The same event again under an id that the caller gives adds no row ([Added.Repeated]): source, type, topic, key,
// payload and the named version are equal. [Config.OnConflict] decides about a different event. Two transactions that
// give one id wait for each other. The relay deletes a given id after relay.Config.IDRetention.
//
// Under the context of an inbox handler, an event carries the handled event's trace and correlation id, and its id as
// causation id.
//
// Errors: [*EventError] and [ErrVersionConflict], both with no event added; else the database's.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...event.Event) ([]Added, error) {
	entries, err := o.prepare(ctx, events)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return o.insert(ctx, tx, entries)
}

// Queue is [Outbox.Add] for one event, in a batch that the caller sends on its transaction.
//
// Errors: [*EventError] with no statement queued. The results of the batch have the other errors of Add, and that of a
// conflicting id: roll back then.
func (o *Outbox) Queue(ctx context.Context, b *pgx.Batch, e event.Event) error {
	entries, err := o.prepare(ctx, []event.Event{e})
	if err != nil {
		return err
	}
	o.queue(b, &entries[0])
	return nil
}

type entry struct {
	event.Event
	index     int
	givenHash []byte // hash of the event, if the caller gave its id
	added     Added
}

func (o *Outbox) prepare(ctx context.Context, events []event.Event) ([]entry, error) {
	cause := event.CauseFrom(ctx)
	entries := make([]entry, len(events))
	for i, given := range events {
		e := o.complete(given, cause)
		if refused := o.check(e); refused != nil {
			refused.Index = i
			return nil, refused
		}
		entries[i] = entry{Event: e, index: i, added: Added{ID: e.ID}}
		if given.ID != "" {
			entries[i].givenHash = contentOf(e)
		}
		o.cfg.Spans.Create(&entries[i].Event)
	}
	if note, is := ctx.Value(noteKey{}).(func()); is && len(entries) > 0 {
		note()
	}
	return entries, nil
}

// A savepoint takes back the rows of a call that fails after its first write.
func (o *Outbox) insert(ctx context.Context, tx pgx.Tx, entries []entry) ([]Added, error) {
	b := &pgx.Batch{}
	if keys := keysOf(entries); len(keys) > 1 {
		for _, k := range keys {
			b.Queue(lockKeySQL, k.topic, k.key)
		}
	}
	mayFail := false
	for i := range entries {
		e := &entries[i]
		o.queue(b, e)
		mayFail = mayFail || e.givenHash != nil || e.Version != 0 && len(entries) > 1
	}
	send := func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() }
	var err error
	if mayFail {
		err = pgx.BeginFunc(ctx, tx, send)
	} else {
		err = send(tx)
	}
	if err != nil {
		return nil, err
	}
	added := make([]Added, len(entries))
	for i := range entries {
		added[i] = entries[i].added
	}
	return added, nil
}

type topicKey struct{ topic, key string }

// keysOf returns the keys of the entries in the order in which every writer locks them.
func keysOf(entries []entry) []topicKey {
	keys := make([]topicKey, len(entries))
	for i := range entries {
		keys[i] = topicKey{entries[i].Topic, entries[i].Key}
	}
	slices.SortFunc(keys, func(a, b topicKey) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.key, b.key))
	})
	return slices.Compact(keys)
}

func (o *Outbox) queue(b *pgx.Batch, e *entry) {
	args := []any{
		e.Topic, e.Key, e.ID, e.Type, e.Source, e.DataSchema, e.Time, e.Extensions, e.Data, e.Version,
	}
	if e.givenHash != nil {
		b.Queue(lockKeySQL, e.Topic, e.Key) // every writer locks keys before ids
		b.Queue(insertGivenSQL, append(args, e.givenHash)...).QueryRow(func(row pgx.Row) error { return o.readGiven(row, e) })
		return
	}
	b.Queue(insertSQL, args...).QueryRow(func(row pgx.Row) error { return o.readInserted(row, e) })
}

func (o *Outbox) readInserted(row pgx.Row, e *entry) error {
	err := row.Scan(&e.added.Version, &e.added.Position)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrVersionConflict
	}
	if err != nil {
		return fmt.Errorf("insert event: %w", err)
	}
	o.countAdded(e)
	return nil
}

func (o *Outbox) countAdded(e *entry) {
	o.added.WithLabelValues(e.Topic).Inc()
	if o.cfg.Log.Enabled(context.Background(), slog.LevelDebug) {
		o.cfg.Log.Debug("event added", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
			"topic", e.Topic)
	}
}

// The upsert locks the key's row before the event gets a position, and reads its committed version, even after a wait.
// It returns no row for a version that is not the next one.
const insertSQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version)
    select $1, $2, 1
    where $10::bigint < 2 or exists (select from public.outbox_key o where o.topic = $1 and o.key = $2)
    on conflict (topic, key) do update set version = k.version + 1 where $10::bigint in (0, k.version + 1)
    returning version
)` + insertRowSQL

const insertRowSQL = `
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select $3::text::uuid, $4, $5, $1, $2, counted.version, nullif($6, ''), $7, nullif($8::jsonb, '{}'), $9
from counted
returning version, position`
