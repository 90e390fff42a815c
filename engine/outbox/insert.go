package outbox

// sql is the statement that adds the batch.
func (b *batch) sql() string {
	switch {
	case !b.single():
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

// lockFirstSQL is for version 1: the key must be new.
const lockFirstSQL = `
with counted as (
    insert into public.outbox_key (topic, key, version) values ($1, $2, 1)
    on conflict (topic, key) do nothing
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
