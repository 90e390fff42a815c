package outbox

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
)

// batch is what a call adds: its events, checked.
type batch struct {
	items       []item
	given       map[string][]byte // the ids that the caller gave, each with its first content
	conditional bool              // an event names its version
	added       []Added           // the call's answer
}

// item is an event that is to be inserted.
type item struct {
	cloudevent.Event
	index   int    // in the call
	content []byte // if the caller gave its id
}

// batch checks the events and fills in what the caller has left out.
func (o *Outbox) batch(ctx context.Context, events []cloudevent.Event) (*batch, error) {
	if err := o.cfg.Refuse(); err != nil {
		return nil, fmt.Errorf("add events: %w", err)
	}
	cause := cloudevent.CauseFrom(ctx)
	b := &batch{items: make([]item, 0, len(events)), added: make([]Added, len(events))}
	for i, e := range events {
		prepared, refused := o.prepare(e, cause)
		if refused != nil {
			refused.Index = i
			return nil, refused
		}
		it := item{Event: prepared, index: i}
		b.added[i].ID = it.ID
		if e.ID != "" {
			it.content = contentOf(it.Event)
			if b.given == nil {
				b.given = map[string][]byte{}
			}
			if repeated, err := o.isRepeated(it, b.given); err != nil {
				return nil, err
			} else if repeated {
				b.added[i].Repeated = true
				continue
			}
			if b.given[it.ID] == nil {
				b.given[it.ID] = it.content
			}
		}
		o.cfg.Spans.Create(&it.Event)
		b.conditional = b.conditional || it.Version != 0
		b.items = append(b.items, it)
	}
	return b, nil
}

// isRepeated reports whether the event is among those that are known by their ids, with their contents. It refuses
// another event under one of these ids, or lets it pass.
func (o *Outbox) isRepeated(it item, known map[string][]byte) (bool, error) {
	content, is := known[it.ID]
	switch {
	case !is:
		return false, nil
	case bytes.Equal(content, it.content):
		return true, nil
	case o.cfg.OnConflict == ConflictWarn:
		o.cfg.Log.Warn("event id added again with another content", "event_id", it.ID)
		return false, nil
	}
	return false, &EventError{
		Code: CodeIDConflict, Index: it.index,
		Detail: "the id " + it.ID + " belongs to an event with another source, type, topic, key, version or payload",
	}
}

// ids are the parameters of recordIDsSQL.
func (b *batch) ids() []any {
	ids, contents := make([]string, 0, len(b.given)), make([][]byte, 0, len(b.given))
	for id, content := range b.given {
		ids, contents = append(ids, id), append(contents, content)
	}
	return []any{ids, contents}
}

// dropRepeated takes out the events that have been added before, under the ids that were given.
func (o *Outbox) dropRepeated(rows pgx.Rows, b *batch) error {
	before := map[string][]byte{}
	var id string
	var content []byte
	_, err := pgx.ForEachRow(rows, []any{&id, &content}, func() error {
		before[id] = content
		return nil
	})
	if err != nil {
		return fmt.Errorf("record given ids: %w", err)
	}
	b.items = slices.DeleteFunc(b.items, func(it item) bool {
		repeated, conflict := o.isRepeated(it, before)
		b.added[it.index].Repeated = repeated
		err = cmp.Or(err, conflict)
		return repeated
	})
	return err
}

// readInserted reads what the insert has made of the events, and counts them: the transaction adds them, if it commits.
func (o *Outbox) readInserted(rows pgx.Rows, b *batch) error {
	var position, version int64
	inserted := 0 // rows come in the order in which they were inserted, that of the call
	_, err := pgx.ForEachRow(rows, []any{&position, &version}, func() error {
		added := &b.added[b.items[inserted].index]
		added.Position, added.Version = position, version
		inserted++
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	if inserted != len(b.items) {
		return ErrVersionConflict
	}
	debug := o.cfg.Log.Enabled(context.Background(), slog.LevelDebug)
	for i := range b.items {
		e := &b.items[i]
		o.added.WithLabelValues(e.Topic).Inc()
		if debug {
			o.cfg.Log.Debug("event added", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic)
		}
	}
	return nil
}

// recordIDsSQL makes the transaction the owner of ids, in their order, and tells which of them it was not the first to
// record. Of two transactions the second one waits here until the first has ended, and then sees its row, which a plain
// select of the same statement would not; in a transaction with an older snapshot it fails with 40001.
const recordIDsSQL = `
with recorded as (
    insert into public.outbox_given_id as g (event_id, content)
    select e.id::uuid, e.content from unnest($1::text[], $2::bytea[]) as e (id, content) order by e.id::uuid
    on conflict (event_id) do update set repeats = g.repeats + 1
    returning event_id::text, content, repeats
)
select event_id, content from recorded where repeats > 0`

// statement is the one that inserts the events, with its parameters.
func (b *batch) statement() (sql string, args []any) {
	if len(b.items) == 1 {
		e := &b.items[0].Event
		args = []any{e.Topic, e.Key, e.ID, e.Type, e.Source, e.DataSchema, e.Time, e.Extensions, e.Data, e.Version}
		if e.Version > 1 {
			return lockNextSQL + insertOneSQL, args
		}
		return lockSQL + insertOneSQL, args
	}
	var topics, keys, ids, types, sources, schemas []string
	var times []time.Time
	var headers []map[string]string
	var data [][]byte
	var versions []int64
	for i := range b.items {
		e := &b.items[i].Event
		topics, keys, ids = append(topics, e.Topic), append(keys, e.Key), append(ids, e.ID)
		types, sources, schemas = append(types, e.Type), append(sources, e.Source), append(schemas, e.DataSchema)
		times, headers = append(times, e.Time), append(headers, e.Extensions)
		data, versions = append(data, e.Data), append(versions, e.Version)
	}
	return insertSQL, []any{
		topics, keys, ids, types, sources, schemas, times, headers, data, versions, !b.conditional,
	}
}

// insertSQL locks and counts the keys, then inserts. It holds the rules of a writer:
//
//   - The upsert locks a key's row before its event gets a position: the event's number comes out of the locked row.
//     Rows are locked in the order of topic and key.
//   - The row's version is the committed one, even if the statement had to wait for the lock: "on conflict" compares
//     with the newest row, not at the statement's snapshot.
//   - The nth event of a key that names a version wants the key to be at that version less n: its base. All events of
//     a key must mean the same base, and those that name no version take any.
//   - No row from the upsert (another version than the expected one) means no event of that key. "exists" is for a key
//     that is expected and not there.
//   - The rows of a key are inserted in the order of their versions: the sort ends before the first default is
//     evaluated.
const insertSQL = `
with event as (
    select *, row_number() over (partition by topic, key order by nth) as n,
        count(*) over (partition by topic, key) as of_key
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::jsonb[],
        $9::bytea[], $10::bigint[]) with ordinality as e (topic, key, event_id, event_type, source, data_schema,
        occurred_at, headers, payload, version, nth)
), wanted as (
    select topic, key, count(*) as events, min(version - n) filter (where version <> 0) as base,
        max(version - n) filter (where version <> 0) as other
    from event group by topic, key
), counted as (
    insert into public.outbox_key as k (topic, key, version)
    select topic, key, events from wanted w
    where base is null or base = other and (base = 0
        or base > 0 and exists (select from public.outbox_key o where o.topic = w.topic and o.key = w.key))
    order by topic collate "C", key collate "C"
    on conflict (topic, key) do update set version = k.version + excluded.version
    where $11 or (select coalesce(base, k.version) = k.version from wanted w where w.topic = k.topic and w.key = k.key)
    returning topic, key, version
)
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select e.event_id::uuid, e.event_type, e.source, k.topic, k.key, k.version - e.of_key + e.n,
    nullif(e.data_schema, ''), e.occurred_at, nullif(e.headers, '{}'), e.payload
from event e
join counted k on k.topic = e.topic and k.key = e.key
order by e.nth
returning position, version`

// One event, the usual case, is insertSQL without arrays, which the server plans once per session. Its two locks do
// only what the named version may need: the server prepares for the rest of a plan with every execution.

// lockSQL is for the next version, and for version 1: then the key must be new, or have had its events scheduled and
// not added yet.
const lockSQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version) values ($1, $2, 1)
    on conflict (topic, key) do update set version = k.version + 1 where $10::bigint = 0 or k.version = 0
    returning version
)`

// lockNextSQL is for every later one. If the row is locked, the version is compared again with the newest row.
const lockNextSQL = `
with counted as (
    update public.outbox_key set version = version + 1
    where topic = $1 and key = $2 and version = $10::bigint - 1
    returning version
)`

const insertOneSQL = `
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select $3::text::uuid, $4, $5, $1, $2, counted.version, nullif($6, ''), $7, nullif($8::jsonb, '{}'), $9
from counted
returning position, version`

// insertGivenSQL is for one event whose given id was recorded by the statement right before it, of which this side has
// not seen the answer yet. If the event was there, nothing is locked, counted or inserted. An id that belongs to
// another event comes here only with [ConflictWarn], or in a transaction that has failed.
const insertGivenSQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version)
    select $1, $2, 1
    where exists (select from public.outbox_given_id g
            where g.event_id = $3::text::uuid and (g.repeats = 0 or g.content <> $11))
        and ($10::bigint < 2 or exists (select from public.outbox_key o where o.topic = $1 and o.key = $2))
    on conflict (topic, key) do update set version = k.version + 1 where $10::bigint in (0, k.version + 1)
    returning version
)` + insertOneSQL
