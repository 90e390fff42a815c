package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// batch is what a call adds: its events, checked, and the numbers that they want.
type batch struct {
	events []cloudevent.Event
	index  []int            // of each event in the call
	behind []int64          // how many events of the same key follow each
	keys   []keyCount       // sorted
	given  map[string]given // ids that come first: their events may turn out to be there already
	added  []Added          // the call's answer; an event that is not inserted is a repeated one
}

// keyCount is one key of a call: how many events it gets, and after which version (anyVersion: the newest).
type keyCount struct {
	topic, key   string
	events, base int64
}

const anyVersion = -1

// batch checks the events and fills in what the caller has left out.
func (o *Outbox) batch(events []cloudevent.Event, cause cloudevent.Cause) (*batch, error) {
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return nil, fmt.Errorf("add events: %w", err)
		}
	}
	now := o.cfg.Now()
	b := &batch{
		events: make([]cloudevent.Event, 0, len(events)), index: make([]int, 0, len(events)),
		added: make([]Added, len(events)),
	}
	for i, e := range events {
		own, repeated := e.ID == "", false
		e = complete(e, o.cfg.Source, now, cause)
		err := o.check(e)
		if err == nil && !own {
			repeated, err = o.giveID(b, i, e)
		}
		if err != nil {
			err.Index = i
			return nil, err
		}
		b.added[i] = Added{ID: e.ID, Repeated: true}
		if repeated {
			continue
		}
		o.cfg.Spans.Create(&e) // part: observability
		b.append(i, e)
	}
	return b, b.countKeys()
}

func (b *batch) append(index int, e cloudevent.Event) {
	b.events, b.index = append(b.events, e), append(b.index, index)
}

// countKeys counts the events of each key, all of which must mean the same base. It has to be done before the batch is
// inserted.
func (b *batch) countKeys() error {
	b.keys, b.behind = nil, make([]int64, len(b.events))
	places := make(map[[2]string]int, len(b.events)) // in keys
	for i, e := range b.events {
		name := [2]string{e.Topic, e.Key}
		place, known := places[name]
		if !known {
			place = len(b.keys)
			places[name] = place
			b.keys = append(b.keys, keyCount{topic: e.Topic, key: e.Key, base: anyVersion})
		}
		k := &b.keys[place]
		k.events++
		if e.Version != 0 { // the nth event of the key wants version base+n
			base := e.Version - k.events
			if base < 0 || k.base != anyVersion && k.base != base {
				return fmt.Errorf("add event %d: %w", b.index[i], ErrVersionConflict)
			}
			k.base = base
		}
		b.behind[i] = -k.events
	}
	for i, e := range b.events {
		b.behind[i] += b.keys[places[[2]string{e.Topic, e.Key}]].events
	}
	slices.SortFunc(b.keys, func(x, y keyCount) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.key, y.key))
	})
	return nil
}

// drop takes the events of some given ids out of the batch.
func (b *batch) drop(ids map[string]bool) error {
	events, index := b.events, b.index
	b.events, b.index = nil, nil
	for i, e := range events {
		if !ids[e.ID] {
			b.append(index[i], e)
		}
	}
	return b.countKeys()
}

// unconditional says that no event names its version.
func (b *batch) unconditional() bool {
	return !slices.ContainsFunc(b.keys, func(k keyCount) bool { return k.base != anyVersion })
}

// withSavepoint runs the statements in a savepoint if they could do some of the work and not the rest: a conflict must
// leave nothing behind, even if the caller commits nevertheless. Id, lock, number and row share the savepoint, so a
// rollback to it takes back all four.
func (b *batch) withSavepoint(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	if len(b.given) == 0 && (len(b.keys) == 1 || b.unconditional()) {
		return do(tx)
	}
	return pgx.BeginFunc(ctx, tx, do)
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

// args are in the order of the parameters of the batch's statement.
func (b *batch) args() []any {
	if len(b.events) == 1 {
		args := b.columns()
		if base := b.keys[0].base; base > 0 {
			args = append(args, base) // lockNextSQL's
		}
		return args
	}
	topics, keys := make([]string, len(b.keys)), make([]string, len(b.keys))
	events, bases := make([]int64, len(b.keys)), make([]int64, len(b.keys))
	for i, k := range b.keys {
		topics[i], keys[i], events[i], bases[i] = k.topic, k.key, k.events, k.base
	}
	var ids, types, sources, eventTopics, eventKeys, schemas, headers []string
	var times []time.Time
	var data [][]byte
	for _, e := range b.events {
		ids, types, sources = append(ids, e.ID), append(types, e.Type), append(sources, e.Source)
		eventTopics, eventKeys = append(eventTopics, e.Topic), append(eventKeys, e.Key)
		schemas, headers = append(schemas, e.DataSchema), append(headers, headersOf(e))
		times, data = append(times, e.Time), append(data, e.Data)
	}
	return []any{
		topics, keys, events, bases, b.unconditional(),
		ids, types, sources, eventTopics, eventKeys, b.behind, schemas, times, headers, data,
	}
}

// columns are those of a batch of one.
func (b *batch) columns() []any {
	e := &b.events[0]
	return []any{e.Topic, e.Key, e.ID, e.Type, e.Source, e.DataSchema, e.Time, headersOf(*e), e.Data}
}

// givenArgs are the parameters of insertGivenSQL.
func (b *batch) givenArgs() []any {
	return append(b.columns(), b.keys[0].base, b.given[b.events[0].ID].content)
}

func headersOf(e cloudevent.Event) string {
	if len(e.Extensions) == 0 {
		return ""
	}
	headers, _ := json.Marshal(e.Extensions) // strings always can be
	return string(headers)
}

// sql is the statement that adds the batch.
func (b *batch) sql() string {
	switch {
	case len(b.events) != 1:
		return insertSQL
	case b.keys[0].base == anyVersion:
		return lockAnySQL + insertOneSQL
	case b.keys[0].base == 0:
		return lockFirstSQL + insertOneSQL
	default:
		return lockNextSQL + insertOneSQL
	}
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

// One event, the usual case, is insertSQL without arrays, which the server plans once per session. Each of its three
// locks does only what the expected version may need: the server prepares for the rest of a plan with every execution.

const lockAnySQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version) values ($1, $2, 1)
    on conflict (topic, key) do update set version = k.version + 1
    returning version
)`

// lockFirstSQL is for version 1: the key must be new, or have had its events scheduled and not added yet.
const lockFirstSQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version) values ($1, $2, 1)
    on conflict (topic, key) do update set version = 1 where k.version = 0
    returning version
)`

// lockNextSQL is for every later one. If the row is locked, the version is compared again with the newest row.
const lockNextSQL = `
with counted as (
    update public.outbox_key set version = version + 1
    where topic = $1 and key = $2 and version = $10
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
        and ($10::bigint < 1 or exists (select from public.outbox_key o where o.topic = $1 and o.key = $2))
    on conflict (topic, key) do update set version = k.version + 1 where $10::bigint in (-1, k.version)
    returning version
)` + insertOneSQL
