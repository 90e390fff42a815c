package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
)

// A twin that is being processed in another transaction makes this statement wait for its end: if it commits, there
// is no row to insert; if it rolls back, there is. REPEATABLE READ would turn the first case into an error. What the
// inbox does not remember is not inserted either: whether it was processed cannot be known.
const insertEntries = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
select $1, e.id, e.place, e.type, e.hash, e.metadata::jsonb
from unnest($2::text[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::bytea[], $7::text[])
    as e (id, place, at, type, hash, metadata)
where e.at >= (select remembers_from from public.inbox_horizon)
on conflict do nothing
returning event_id`

// idTable is the inbox table: which ids a consumer has processed. What it reads of keys travels with the inserts.
type idTable struct {
	cfg   *Config
	order keyOrder
}

// record inserts the inbox rows of the items, in one round trip, and gives each item its outcome: Applied for those
// that are new. The keys' states are read by later statements than the insert, since that one may have waited: a
// snapshot from before would not show what the twin committed.
//
// What was there before runs no handler and moves no watermark, so nothing in the transaction waits for what its id
// means: in a transaction of the inbox's own the question is queued, and travels with the handlers' writes and the
// commit. Until then the outcome is Failed.
func (t *idTable) record(ctx context.Context, tx pgx.Tx, items []*item) (keys []keyState, err error) {
	if len(items) == 1 && !items[0].ignored {
		keys, err = t.insertOne(ctx, tx, items[0])
	} else {
		keys, err = t.insert(ctx, tx, items)
	}
	if err != nil {
		return nil, err
	}
	var known []*item
	for _, it := range items {
		if it.outcome == Failed && !it.ignored {
			known = append(known, it)
		}
	}
	if len(known) > 0 {
		err = enqueue(ctx, tx, t.compare(known))
	}
	return keys, err
}

var errOtherTime = errors.New("an id is in the batch with two times")

// insert inserts the items' rows and reads the state of the keys. An id that comes twice among them is new the first
// time, and compared with that the second; with another time, which an id that carries none may come with, it is
// refused: that the inbox does not remember the first one's says nothing of the second. The outcome is Failed for ids
// that were there before.
func (t *idTable) insert(ctx context.Context, tx pgx.Tx, items []*item) ([]keyState, error) {
	first := make(map[string]*item, len(items)) // by id; those that no handler wants are not recorded
	unique := make([]*item, 0, len(items))
	for i, it := range items {
		if it.ignored {
			continue
		}
		it.outcome = Failed
		switch twin := first[it.entry.id]; {
		case twin == nil:
			first[it.entry.id], unique = it, append(unique, it)
		case !twin.entry.at.Equal(it.entry.at):
			return nil, &itemError{item: i, err: errOtherTime}
		}
	}
	keys, batch := keysOf(items), &pgx.Batch{}
	if len(unique) > 0 {
		batch.Queue(insertEntries, t.cfg.Consumer, columnOf(unique, idOf), columnOf(unique, placeOf),
			columnOf(unique, timeOf), columnOf(unique, typeOf), columnOf(unique, hashOf), textColumn(encodeAll(unique))).
			Query(func(rows pgx.Rows) error {
				var id string
				_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
					first[id].outcome = Applied
					return nil
				})
				return err
			})
	}
	t.order.ask(batch, keys)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert inbox rows: %w", routed(err))
	}
	if len(unique) < len(items) {
		for _, it := range items {
			if twin := first[it.entry.id]; !it.ignored && twin != it && twin.outcome == Applied {
				it.meetTwin(bytes.Equal(it.entry.hash, twin.entry.hash))
			}
		}
	}
	return keys, nil
}

// insertEntry is what insertEntries, selectParked and selectWatermarks do, in one statement for one event. It may wait
// for a twin of this event only, and if that twin commits the rest does not matter: so here one snapshot is enough.
// "limit" and not min(), which the server plans twice: a third of what a session's first events cost.
const insertEntry = `
with fresh as (
    insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
    select $1, $2, $3, $4, $5, $6::jsonb
    where $7::timestamptz >= (select remembers_from from public.inbox_horizon)
    on conflict do nothing
    returning 1
)
select exists (select from fresh),
    (select version from public.dead_letter
        where consumer = $1 and state = 'waiting' and holds and key_start = convert_to($8::text, 'UTF8')
        order by version limit 1),
    `

// The two forms of it, since only a versioned consumer is to pay for the watermark. One form with a condition would be
// planned anew each time.
const (
	insertUnversioned = insertEntry + `null::bigint`
	insertVersioned   = insertEntry + `(select version from public.inbox_watermark where consumer = $1 and key = $8)`
)

// insertOne is insert for one event, which costs the server half as much.
func (t *idTable) insertOne(ctx context.Context, tx pgx.Tx, it *item) ([]keyState, error) {
	keys := []keyState{{key: it.event.Key, found: noWatermark}}
	it.key = &keys[0]
	e, sql := &it.entry, insertUnversioned
	if t.cfg.Versioned {
		sql = insertVersioned
	}
	var isNew bool
	var held, version *int64
	batch := &pgx.Batch{}
	metadata := string(it.appendMetadata(make([]byte, 0, 256), time.Now()))
	batch.Queue(sql, t.cfg.Consumer, e.id, e.place, e.typ, e.hash, metadata, e.at, it.key.key).
		QueryRow(func(row pgx.Row) error { return row.Scan(&isNew, &held, &version) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert inbox row: %w", routed(err))
	}
	if it.outcome = Failed; isNew {
		it.outcome = Applied
	}
	if held != nil {
		it.key.isHeld(*held)
	}
	if version != nil {
		it.key.isAt(*version)
	}
	return keys, nil
}

// routed makes one failure transient: the janitor gave the event's day a partition of its own between the statement's
// choice of a partition and its insert.
func routed(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "23514" { // check_violation
		return failure.AsTransient(err)
	}
	return err
}

// selectTwins looks up one id at a time, in the partition of its place; "offset 0" keeps the planner to that. A join
// would read all that a consumer remembers, as long as a partition has no statistics. The parameters stand apart
// because the planner must not see how many ids there are: for few it would think a plan of their own the cheaper one
// and make it anew for each batch, over every partition.
const selectTwins = `
with asked as materialized (
    select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as places, $4::bytea[] as hashes
)
select e.n, i.payload_hash = e.hash from asked
cross join unnest(asked.ids, asked.places, asked.hashes) with ordinality as e (id, place, hash, n)
cross join lateral (
    select r.payload_hash from public.inbox r
    where r.consumer = asked.consumer and r.event_id = e.id and r.event_time = e.place offset 0
) as i`

// compare is the question what is remembered under the items' ids. Its answer gives them their outcomes: Duplicate,
// Conflict, or Expired for one that is not there.
func (t *idTable) compare(items []*item) queued {
	return queued{
		sql:  selectTwins,
		args: []any{t.cfg.Consumer, columnOf(items, idOf), columnOf(items, placeOf), columnOf(items, hashOf)},
		read: func(rows pgx.Rows) error {
			for _, it := range items {
				it.outcome = Expired
			}
			var n int
			var same bool
			_, err := pgx.ForEachRow(rows, []any{&n, &same}, func() error {
				items[n-1].meetTwin(same)
				return nil
			})
			if err != nil {
				return fmt.Errorf("read inbox rows: %w", err)
			}
			return nil
		},
	}
}

// meetTwin gives an item whose id is another one's, too, its outcome.
func (it *item) meetTwin(same bool) {
	if it.outcome = Conflict; same {
		it.outcome = Duplicate
	}
}

// allProcessed says whether all the items were processed before, with the same payload. If so, that is their outcome.
func (t *idTable) allProcessed(ctx context.Context, q audit.Querier, items []*item) (all bool, err error) {
	question := t.compare(items)
	rows, _ := q.Query(ctx, question.sql, question.args...)
	if err := question.read(rows); err != nil {
		return false, failure.AsTransient(err)
	}
	if !slices.ContainsFunc(items, func(it *item) bool { return it.outcome != Duplicate }) {
		return true, nil
	}
	for _, it := range items {
		it.outcome = Failed // until it is decided
	}
	return false, nil
}

// amendEntry adds a field to the row of an event, or replaces it.
const amendEntry = `
update public.inbox set metadata = metadata || jsonb_build_object($4::text, $5::text)
where consumer = $1 and event_id = $2 and event_time = $3`

// markOutcome stores the outcome of an event that was recorded in this transaction, as applied, and is not.
func (t *idTable) markOutcome(ctx context.Context, tx pgx.Tx, it *item) error {
	return Queue(ctx, tx, amendEntry, t.cfg.Consumer, it.entry.id, it.entry.place, "outcome", string(it.outcome))
}

// markConflict leaves a mark of a record that is only warned of on the row of the event that has its id.
func (t *idTable) markConflict(ctx context.Context, it *item) error {
	at := fmt.Sprintf("%s[%d]@%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	_, err := t.cfg.Pool.Exec(ctx, amendEntry, t.cfg.Consumer, it.entry.id, it.entry.place, "conflict", at)
	return err
}

// recordNow is record for one item, whose outcome is known when it returns.
func (t *idTable) recordNow(ctx context.Context, tx pgx.Tx, it *item) error {
	_, err := t.record(ctx, tx, []*item{it})
	if w, own := tx.(*work); err == nil && own {
		err = w.ready(ctx)
	}
	return err
}

// take takes the id's place for a dead letter, or reports that the same event has it already. It does neither where
// another event has the place, or the inbox does not remember so far back: what was refused before its id was looked at
// may be either.
func (t *idTable) take(ctx context.Context, tx pgx.Tx, it *item) (taken, twin bool, err error) {
	dead := &item{entry: it.entry, origin: it.origin}
	dead.entry.outcome, dead.entry.typ = Dead, deadletter.Text(it.entry.typ)
	dead.entry.correlationID = deadletter.Text(it.entry.correlationID)
	err = t.recordNow(ctx, tx, dead)
	return dead.outcome == Applied, dead.outcome == Duplicate, err
}
