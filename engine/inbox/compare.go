package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/failure"
)

const selectHash = `
select payload_hash from public.inbox where consumer = $1 and event_id = $2 and event_time = $3`

// selectHashes looks up one id at a time, in the partition of its place; "offset 0" keeps the planner to that. A join
// would read all that a consumer remembers, as long as a partition has no statistics. The parameters stand apart
// because the planner must not see how many ids there are: for few it would think a plan of their own the cheaper one
// and make it anew for each batch, over every partition.
const selectHashes = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as places)
select e.id, i.payload_hash from asked cross join unnest(asked.ids, asked.places) as e (id, place)
cross join lateral (
    select r.payload_hash from public.inbox r
    where r.consumer = asked.consumer and r.event_id = e.id and r.event_time = e.place offset 0
) as i`

// compareHashes gives their outcomes to items whose ids were there before: Duplicate, Conflict, or Expired for one that
// is not there either, because the horizon kept it out. None of them runs a handler or moves a watermark, so nothing in
// the transaction waits for the answer: in one of the inbox's own the question is queued, and travels with the
// handlers' writes and the commit. Until then their outcome is Failed.
func (t *idTable) compareHashes(ctx context.Context, tx pgx.Tx, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	sql, args := t.hashesOf(items)
	read := func(rows pgx.Rows) error {
		hashes, err := readHashes(rows, items)
		if err != nil {
			return err
		}
		for _, it := range items {
			it.outcome = it.outcomeAmong(hashes)
		}
		return nil
	}
	if w, ok := tx.(*work); ok {
		w.queue = append(w.queue, queued{item: noItem, sql: sql, args: args, read: read})
		return nil
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("read inbox rows: %w", err)
	}
	return read(rows)
}

// hashesOf is the question for the payload hashes under the items' ids.
func (t *idTable) hashesOf(items []*item) (sql string, args []any) {
	if len(items) == 1 {
		e := &items[0].entry
		return selectHash, []any{t.consumer, e.id, e.place}
	}
	return selectHashes, []any{t.consumer, columnOf(items, idOf), columnOf(items, placeOf)}
}

// readHashes reads the answer.
func readHashes(rows pgx.Rows, items []*item) (map[string][]byte, error) {
	hashes := make(map[string][]byte, len(items))
	id, hash := items[0].entry.id, []byte(nil)
	targets := []any{&id, &hash}
	if len(items) == 1 {
		targets = targets[1:]
	}
	_, err := pgx.ForEachRow(rows, targets, func() error {
		hashes[id] = bytes.Clone(hash)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read inbox rows: %w", err)
	}
	return hashes, nil
}

// hashOf reads the payload hash under an id at once, nil where the id is not there.
func (t *idTable) hashOf(ctx context.Context, tx pgx.Tx, e *entry) (hash []byte, err error) {
	err = tx.QueryRow(ctx, selectHash, t.consumer, e.id, e.place).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read inbox row: %w", err)
	}
	return hash, nil
}

// outcomeAmong is the outcome of an item that was not inserted, by the hashes that are there.
func (it *item) outcomeAmong(hashes map[string][]byte) Outcome {
	hash, known := hashes[it.entry.id]
	if !known {
		return Expired
	}
	return it.sameAs(hash)
}

func (it *item) sameAs(hash []byte) Outcome {
	if bytes.Equal(hash, it.entry.hash) {
		return Duplicate
	}
	return Conflict
}

// allProcessed says whether all the items were processed before, with the same payload. If so, that is their outcome.
func (t *idTable) allProcessed(ctx context.Context, q audit.Querier, items []*item) (all bool, err error) {
	sql, args := t.hashesOf(items)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return false, failure.AsTransient(fmt.Errorf("read inbox rows: %w", err))
	}
	hashes, err := readHashes(rows, items)
	if err != nil {
		return false, failure.AsTransient(err)
	}
	for _, it := range items {
		if it.outcomeAmong(hashes) != Duplicate {
			return false, nil
		}
	}
	for _, it := range items {
		it.outcome = Duplicate
	}
	return true, nil
}

// updateOutcomes corrects rows that were written as applied, before it was known what becomes of the event.
const updateOutcomes = `
update public.inbox set metadata = metadata || jsonb_build_object('outcome', p.outcome)
from unnest($2::text[], $3::timestamptz[], $4::text[]) as p (id, place, outcome)
where consumer = $1 and event_id = p.id and event_time = p.place`

// markOutcomes stores the outcomes of events that were recorded in this transaction and are not applied.
func (t *idTable) markOutcomes(ctx context.Context, tx pgx.Tx, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	ids, outcomes, places := make([]string, len(items)), make([]string, len(items)), make([]time.Time, len(items))
	for i, it := range items {
		ids[i], outcomes[i], places[i] = it.entry.id, string(it.outcome), it.entry.place
	}
	if err := Queue(ctx, tx, updateOutcomes, t.consumer, ids, places, outcomes); err != nil {
		return fmt.Errorf("store outcomes: %w", err)
	}
	return nil
}

const markConflict = `
update public.inbox set metadata = metadata || jsonb_build_object('conflict', $4::text)
where consumer = $1 and event_id = $2 and event_time = $3`

// markConflict leaves a mark of a record that is only warned of on the row of the event that has its id.
func (t *idTable) markConflict(ctx context.Context, pool *pgxpool.Pool, it *item) error {
	at := fmt.Sprintf("%s[%d]@%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	_, err := pool.Exec(ctx, markConflict, t.consumer, it.entry.id, it.entry.place, at)
	return err
}

// take takes the id's place, or reports that the same event has it already. It does neither where another event has the
// place, or the inbox does not remember so far back: what was refused before its id was looked at may be either.
func (t *idTable) take(ctx context.Context, tx pgx.Tx, e entry) (taken, twin bool, err error) {
	s, err := t.insertOne(ctx, tx, &item{entry: e})
	if err != nil || s.inserted[e.id] {
		return err == nil, false, err
	}
	hash, err := t.hashOf(ctx, tx, &e)
	return false, err == nil && hash != nil && bytes.Equal(hash, e.hash), err
}
