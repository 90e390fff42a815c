package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// batch is what a call adds: its events, checked.
type batch struct {
	events      []cloudevent.Event
	index       []int             // of each event in the call
	contents    [][]byte          // of the events whose ids the caller gave; nil for others
	given       map[string][]byte // the first content under each of these ids
	conditional bool              // an event names its version
	added       []Added           // the call's answer
}

// batch checks the events and fills in what the caller has left out.
func (o *Outbox) batch(events []cloudevent.Event, cause cloudevent.Cause) (*batch, error) {
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return nil, fmt.Errorf("add events: %w", err)
		}
	}
	now := o.cfg.Now()
	b := &batch{events: make([]cloudevent.Event, 0, len(events))}
	for i, e := range events {
		own := e.ID == ""
		e = complete(e, o.cfg.Source, now, cause)
		if err := o.check(e); err != nil {
			err.Index = i
			return nil, err
		}
		var content []byte
		if !own {
			content = contentOf(e)
			switch first, twice := b.given[e.ID]; {
			case twice && bytes.Equal(first, content):
				b.added = append(b.added, Added{ID: e.ID, Repeated: true})
				continue
			case twice:
				if err := o.checkConflict(i, e.ID); err != nil {
					return nil, err
				}
			case b.given == nil:
				b.given = map[string][]byte{e.ID: content}
			default:
				b.given[e.ID] = content
			}
		}
		o.cfg.Spans.Create(&e) // part: observability
		b.append(e, content)
	}
	return b, nil
}

func (b *batch) append(e cloudevent.Event, content []byte) {
	b.events, b.index, b.contents = append(b.events, e), append(b.index, len(b.added)), append(b.contents, content)
	b.added = append(b.added, Added{ID: e.ID})
	b.conditional = b.conditional || e.Version != 0
}

func (o *Outbox) check(e cloudevent.Event) *EventError {
	if err := checkEvent(e, o.cfg.MaxEventBytes); err != nil {
		return err
	}
	if o.cfg.Validate == nil {
		return nil
	}
	if err := o.cfg.Validate(e); err != nil {
		return &EventError{Code: CodeInvalidPayload, Detail: err.Error(), Err: err}
	}
	return nil
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
	var repeats int
	_, err := pgx.ForEachRow(rows, []any{&id, &content, &repeats}, func() error {
		if repeats > 0 {
			before[id] = content
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record given ids: %w", err)
	}
	events, index := b.events, b.index
	b.events, b.index = nil, nil
	for i, e := range events {
		content, known := before[e.ID]
		if known && bytes.Equal(content, b.contents[i]) {
			b.added[index[i]].Repeated = true
			continue
		}
		if known {
			if err := o.checkConflict(index[i], e.ID); err != nil {
				return err
			}
		}
		b.events, b.index = append(b.events, e), append(b.index, index[i])
	}
	return nil
}

// readInserted reads what the insert has made of the events, and counts them: the transaction adds them, if it commits.
func (o *Outbox) readInserted(rows pgx.Rows, b *batch) error {
	var position, version int64
	inserted := 0 // rows come in the order in which they were inserted, that of the call
	_, err := pgx.ForEachRow(rows, []any{&position, &version}, func() error {
		added := &b.added[b.index[inserted]]
		added.Position, added.Version = position, version
		inserted++
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	if inserted != len(b.events) {
		return ErrVersionConflict
	}
	debug := o.cfg.Log.Enabled(context.Background(), slog.LevelDebug)
	for i := range b.events {
		e := &b.events[i]
		o.added.WithLabelValues(e.Topic).Inc()
		if debug {
			o.cfg.Log.Debug("event added", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic)
		}
	}
	return nil
}

// recordIDsSQL makes the transaction the owner of ids, in their order. Of two transactions the second one waits here
// until the first has ended, and then sees its row, which a plain select of the same statement would not; in a
// transaction with an older snapshot it fails with 40001.
const recordIDsSQL = `
insert into public.outbox_given_id as g (event_id, content)
select e.id::uuid, e.content from unnest($1::text[], $2::bytea[]) as e (id, content) order by e.id::uuid
on conflict (event_id) do update set repeats = g.repeats + 1
returning g.event_id::text, g.content, g.repeats`

// statement is the one that inserts the events, with its parameters.
func (b *batch) statement() (sql string, args []any, err error) {
	if len(b.events) == 1 {
		e := &b.events[0]
		args = []any{e.Topic, e.Key, e.ID, e.Type, e.Source, e.DataSchema, e.Time, headersOf(*e), e.Data, e.Version}
		if e.Version > 1 {
			return lockNextSQL + insertOneSQL, args, nil
		}
		return lockSQL + insertOneSQL, args, nil
	}
	wanted, behind, err := b.countKeys()
	if err != nil {
		return "", nil, err
	}
	var keyTopics, keys []string
	var counts, bases []int64
	for _, k := range wanted {
		keyTopics, keys = append(keyTopics, k.topic), append(keys, k.key)
		counts, bases = append(counts, k.events), append(bases, k.base)
	}
	var ids, types, sources, topics, eventKeys, schemas, headers []string
	var times []time.Time
	var data [][]byte
	for _, e := range b.events {
		ids, types, sources = append(ids, e.ID), append(types, e.Type), append(sources, e.Source)
		topics, eventKeys = append(topics, e.Topic), append(eventKeys, e.Key)
		schemas, headers = append(schemas, e.DataSchema), append(headers, headersOf(e))
		times, data = append(times, e.Time), append(data, e.Data)
	}
	return insertSQL, []any{
		keyTopics, keys, counts, bases, !b.conditional,
		ids, types, sources, topics, eventKeys, behind, schemas, times, headers, data,
	}, nil
}

// keyCount is one key of a call: how many events it gets, and after which version (anyVersion: the newest).
type keyCount struct {
	topic, key   string
	events, base int64
}

const anyVersion = -1

// countKeys counts the events of each key, all of which must mean the same base. It returns the keys in their order,
// and how many events of its key follow each event.
func (b *batch) countKeys() (keys []keyCount, behind []int64, err error) {
	counts, behind := make(map[[2]string]*keyCount, len(b.events)), make([]int64, len(b.events))
	for i, e := range b.events {
		name := [2]string{e.Topic, e.Key}
		k := counts[name]
		if k == nil {
			k = &keyCount{topic: e.Topic, key: e.Key, base: anyVersion}
			counts[name] = k
		}
		k.events++
		if e.Version != 0 { // the nth event of the key wants version base+n
			base := e.Version - k.events
			if base < 0 || k.base != anyVersion && k.base != base {
				return nil, nil, fmt.Errorf("add event %d: %w", b.index[i], ErrVersionConflict)
			}
			k.base = base
		}
		behind[i] = -k.events
	}
	for i, e := range b.events {
		behind[i] += counts[[2]string{e.Topic, e.Key}].events
	}
	for _, k := range counts {
		keys = append(keys, *k)
	}
	slices.SortFunc(keys, func(x, y keyCount) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.key, y.key))
	})
	return keys, behind, nil
}

func headersOf(e cloudevent.Event) string {
	if len(e.Extensions) == 0 {
		return ""
	}
	headers, _ := json.Marshal(e.Extensions) // strings always can be
	return string(headers)
}

// insertSQL locks and counts the keys, then inserts. It holds the rules of a writer:
//
//   - The upsert locks a key's row before its event gets a position: the event's number comes out of the locked row.
//     Keys arrive sorted, and rows are locked in that order.
//   - The row's version is the committed one, even if the statement had to wait for the lock: "on conflict" compares
//     with the newest row, not at the statement's snapshot.
//   - No row from the upsert (another version than the expected one) means no event of that key. "exists" is for a key
//     that is expected and not there.
//   - The rows of a key are inserted in the order of their versions: the sort ends before the first default is
//     evaluated.
const insertSQL = `
with wanted as (
    select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as w (topic, key, events, base)
), counted as (
    insert into public.outbox_key as k (topic, key, version)
    select topic, key, events from wanted w
    where $5 or base < 1 or exists (select from public.outbox_key o where o.topic = w.topic and o.key = w.key)
    on conflict (topic, key) do update set version = k.version + excluded.version
    where $5 or (select base in (-1, k.version) from wanted w where w.topic = k.topic and w.key = k.key)
    returning topic, key, version
)
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select e.event_id::uuid, e.event_type, e.source, k.topic, k.key, k.version - e.behind, nullif(e.data_schema, ''),
    e.occurred_at, nullif(e.headers, '')::jsonb, e.payload
from unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[],
    $13::timestamptz[], $14::text[], $15::bytea[]) with ordinality as e (event_id, event_type, source, topic, key,
    behind, data_schema, occurred_at, headers, payload, nth)
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
select $3::text::uuid, $4, $5, $1, $2, counted.version, nullif($6, ''), $7, nullif($8::text, '')::jsonb, $9
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
