package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
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

// compare gives their outcomes to items whose ids were there before: Duplicate, Conflict, or Expired for one that is
// not there either, because the horizon kept it out. None of them runs a handler or moves a watermark, so nothing in
// the transaction waits for the answer: in one of the inbox's own the question is queued, and travels with the
// handlers' writes and the commit. Until then their outcome is Failed.
func (in *Inbox) compare(ctx context.Context, tx pgx.Tx, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	sql, args := in.hashesOf(items)
	read := func(rows pgx.Rows) error {
		hashes, err := readHashes(rows, items)
		if err != nil {
			return err
		}
		for _, it := range items {
			it.outcome = it.seen(hashes)
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
func (in *Inbox) hashesOf(items []*item) (sql string, args []any) {
	if len(items) == 1 {
		e := &items[0].entry
		return selectHash, []any{in.cfg.Consumer, e.id, e.place}
	}
	return selectHashes, []any{in.cfg.Consumer, columnOf(items, idOf), columnOf(items, placeOf)}
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
func (in *Inbox) hashOf(ctx context.Context, tx pgx.Tx, e *entry) (hash []byte, err error) {
	err = tx.QueryRow(ctx, selectHash, in.cfg.Consumer, e.id, e.place).Scan(&hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read inbox row: %w", err)
	}
	return hash, nil
}

// seen is the outcome of an item that was not inserted, by the hashes that are there.
func (it *item) seen(hashes map[string][]byte) Outcome {
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
