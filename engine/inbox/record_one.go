package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/failure"
)

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
        where consumer = $1 and state = 'waiting' and holds and key_start = $8::bytea order by version limit 1),
    `

// The two forms of it. One with a condition would be planned anew each time.
const (
	insertUnversioned = insertEntry + `null::bigint where $9::text is not null`
	insertVersioned   = insertEntry + `(select version from public.inbox_watermark where consumer = $1 and key = $9)`
)

// insertOne is insert for one event, which costs the server half as much.
func (t *idTable) insertOne(ctx context.Context, tx pgx.Tx, it *item) (*state, error) {
	e, key := it.entry, it.event.Key
	var inserted bool
	var parked, version *int64
	batch := &pgx.Batch{}
	sql := insertUnversioned
	if t.versioned {
		sql = insertVersioned
	}
	batch.Queue(sql, t.consumer, e.id, e.place, e.typ, e.hash, e.origin.encode(), e.at, []byte(key), key).
		QueryRow(func(row pgx.Row) error { return row.Scan(&inserted, &parked, &version) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert inbox row: %w", routed(err))
	}
	s := &state{}
	if inserted {
		s.inserted = map[string]bool{e.id: true}
	}
	s.parked, s.watermarks = noted(key, parked), noted(key, version)
	return s, nil
}

func noted(key string, number *int64) map[string]int64 {
	if number == nil {
		return nil
	}
	return map[string]int64{key: *number}
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
