package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// The insert waits for a transaction that has inserted the id. It skips events from before the horizon, and ids with a
// remembered dead letter. For "materialized" and "offset 0" see selectKeys.
//
// Two owners of a partition insert its ids in the same order, that of the offsets, and a replay inserts one id: they
// cannot deadlock. Batches with duplicates of the same ids in another order may; PostgreSQL rolls one of them back, and
// it is tried again, as after each transient error.
const insertIDs = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as event_times)
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
select asked.consumer, e.id, e.event_time, e.type, e.hash, e.metadata
from asked cross join unnest(asked.ids, asked.event_times, $4::text[], $5::bytea[], $6::jsonb[], $7::timestamptz[])
    as e (id, event_time, type, hash, metadata, horizon_time)
where e.horizon_time >= (select remembers_from from public.inbox_horizon)
    and not exists (select from public.dead_letter d
        where d.consumer = asked.consumer and d.event_id = e.id and d.remembered and d.id <> $8 offset 0)
on conflict do nothing
returning event_id`

// The insert's snapshot misses a dead letter of a transaction that it waited for.
const selectDead = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids)
select e.id from asked cross join unnest(asked.ids) as e (id)
where exists (select from public.dead_letter d
    where d.consumer = asked.consumer and d.event_id = e.id and d.remembered and d.id <> $3 offset 0)`

var errDied = errors.New("another transaction has made the event a dead letter")

// idSet is the ids of a transaction, each of them once.
type idSet struct {
	consumer string
	replayed int64   // the dead letter; 0: none
	items    []*item // with a handler
	ids      []string
	times    []time.Time // see idTime
	inserted []string
}

func collectIDs(consumer string, items []*item) *idSet {
	s := &idSet{consumer: consumer}
	if r := items[0].replay; r != nil {
		s.replayed = r.ID
	}
	for _, it := range items {
		if it.hasHandler() {
			s.items = append(s.items, it)
			s.ids, s.times = append(s.ids, it.event.ID), append(s.times, idTime(it.event.ID))
		}
	}
	return s
}

func (s *idSet) insert(batch *pgx.Batch) {
	if len(s.ids) == 0 {
		return
	}
	var types []string
	var hashes, metadata [][]byte
	var horizonTimes []time.Time
	for _, it := range s.items {
		types, hashes = append(types, it.event.Type), append(hashes, it.hash)
		metadata, horizonTimes = append(metadata, it.metadata()), append(horizonTimes, it.horizonTime())
	}
	insert := batch.Queue(insertIDs, s.consumer, s.ids, s.times, types, hashes, metadata, horizonTimes, s.replayed)
	insert.Query(func(rows pgx.Rows) (err error) {
		s.inserted, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(selectDead, s.consumer, s.ids, s.replayed).Query(func(rows pgx.Rows) error {
		dead, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if slices.ContainsFunc(dead, func(id string) bool { return slices.Contains(s.inserted, id) }) {
			return failure.AsTransient(errDied)
		}
		return err
	})
}

// The inbox row has an operator's payload, the dead letter the original.
const selectHashes = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as event_times)
select e.id, h.hash
from asked cross join unnest(asked.ids, asked.event_times) as e (id, event_time)
cross join lateral (
    (select i.payload_hash from public.inbox i
    where i.consumer = asked.consumer and i.event_id = e.id and i.event_time = e.event_time offset 0)
    union all
    (select sha256(d.payload) from public.dead_letter d
    where d.consumer = asked.consumer and d.event_id = e.id and d.remembered and d.id <> $4 offset 0)
) as h (hash)`

// compare sets the outcomes of events whose ids were not inserted. It is a new statement: the insert's snapshot misses
// the rows of a transaction that it waited for.
func (s *idSet) compare(ctx context.Context, tx pgx.Tx) error {
	if len(s.inserted) == len(s.items) {
		return nil
	}
	known := make(map[string][][]byte, len(s.ids)) // payload hashes by id
	rows, _ := tx.Query(ctx, selectHashes, s.consumer, s.ids, s.times, s.replayed)
	var id string
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&id, &hash}, func() error {
		known[id] = append(known[id], slices.Clone(hash))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read inbox rows: %w", err)
	}
	for _, it := range s.items {
		switch hashes := known[it.event.ID]; {
		case slices.Contains(s.inserted, it.event.ID): // new
		case hashes == nil:
			it.outcome = Expired
		case slices.ContainsFunc(hashes, it.hasPayload):
			it.outcome = Duplicate
		default:
			it.outcome = Conflict
		}
	}
	return nil
}

// In a replay the original payload counts too.
func (it *item) hasPayload(hash []byte) bool {
	if it.replay != nil {
		came := sha256.Sum256(it.replay.Payload)
		if bytes.Equal(hash, came[:]) {
			return true
		}
	}
	return bytes.Equal(hash, it.hash)
}

const (
	deleteIDs = `
delete from public.inbox i using unnest($2::text[], $3::timestamptz[]) as e (id, event_time)
where i.consumer = $1 and i.event_id = e.id and i.event_time = e.event_time`

	updateTimes = `
update public.inbox i set metadata = i.metadata || jsonb_build_object('processing_time_ms', e.ms)
from unnest($2::text[], $3::timestamptz[], $4::bigint[]) as e (id, event_time, ms)
where i.consumer = $1 and i.event_id = e.id and i.event_time = e.event_time`
)

// finish deletes the rows of events whose handler did not run. It stores handler times from a millisecond on.
func (s *idSet) finish(queue *pgx.Batch) {
	var skipped, slow []string
	var skippedAt, slowAt []time.Time
	var times []int64
	for _, it := range s.items {
		id := it.event.ID
		switch it.outcome {
		case Gap, Parked, Dead, Stale:
			skipped, skippedAt = append(skipped, id), append(skippedAt, idTime(id))
		case Applied:
			if it.took >= time.Millisecond {
				slow, slowAt, times = append(slow, id), append(slowAt, idTime(id)), append(times, it.took.Milliseconds())
			}
		}
	}
	if len(skipped) > 0 {
		queue.Queue(deleteIDs, s.consumer, skipped, skippedAt)
	}
	if len(slow) > 0 {
		queue.Queue(updateTimes, s.consumer, slow, slowAt, times)
	}
}

func (it *item) metadata() []byte {
	m := rowMetadata{
		Group: it.origin.Group, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset,
		ProcessingTime: time.Now().UTC(),
	}
	if id := it.event.CorrelationID(); id != it.event.ID {
		m.CorrelationID = id
	}
	encoded, _ := json.Marshal(m)
	return encoded
}

type rowMetadata struct {
	Group            string    `json:"group,omitempty"`
	Topic            string    `json:"topic,omitempty"`
	Partition        int32     `json:"partition"`
	Offset           int64     `json:"offset"`
	CorrelationID    string    `json:"correlation_id,omitempty"`
	ProcessingTime   time.Time `json:"processing_time"` // by the process's clock
	ProcessingTimeMS int64     `json:"processing_time_ms"`
}

// timeless is the time of all ids without one. An id that comes back with another ce_time must not be applied twice.
var timeless = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// Days begin here in migrations/inbox.
var firstDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// idTime returns the time in an id. It decides the table partition, because a unique index holds within one.
func idTime(id string) time.Time {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return timeless
	}
	if at := time.Unix(u.Time().UnixTime()).UTC(); !at.Before(firstDay) {
		return at
	}
	return timeless
}

// A replay passes the horizon if it is forced, or if the event was new when its dead letter was stored.
func (it *item) horizonTime() time.Time {
	if it.replay != nil && (it.replay.Remembered || it.replay.Force) {
		return time.Now()
	}
	if at := idTime(it.event.ID); !at.Equal(timeless) {
		return at
	}
	return it.event.Time
}
