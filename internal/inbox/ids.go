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

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

const isNew Outcome = ""

// The insert waits for a transaction that has inserted the id. It inserts no event from before the horizon, nor one
// with a dead letter, unless the inbox did not remember that, such as a conflict. For "materialized" and
// "offset 0" see selectKeys.
const insertIDs = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as places)
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
select asked.consumer, e.id, e.place, e.type, e.hash, e.metadata
from asked cross join unnest(asked.ids, asked.places, $4::text[], $5::bytea[], $6::jsonb[], $7::timestamptz[])
    as e (id, place, type, hash, metadata, at)
where e.at >= (select remembers_from from public.inbox_horizon)
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

// idSet is the ids of a transaction.
type idSet struct {
	consumer         string
	letter           int64
	items            []*item
	first            map[string]*item // of an id that comes twice
	ids, types       []string
	places, times    []time.Time
	hashes, metadata [][]byte
	inserted         []string
}

func (in *Inbox) collectIDs(items []*item) *idSet {
	s := &idSet{
		consumer: in.cfg.Consumer, letter: items[0].letterID(), items: items, first: make(map[string]*item, len(items)),
	}
	for _, it := range items {
		id := it.event.ID
		it.outcome, it.misplaced, it.comesAgain = isNew, nil, false
		switch earlier := s.first[id]; {
		case !it.hasRow():
		case earlier != nil:
			earlier.comesAgain = true
		default:
			s.first[id] = it
			s.ids, s.types, s.places = append(s.ids, id), append(s.types, it.event.Type), append(s.places, idTime(id))
			s.times, s.hashes = append(s.times, it.at()), append(s.hashes, it.hash)
			s.metadata = append(s.metadata, it.metadata())
		}
	}
	return s
}

func (s *idSet) insert(batch *pgx.Batch) {
	if len(s.ids) == 0 {
		return
	}
	insert := batch.Queue(insertIDs, s.consumer, s.ids, s.places, s.types, s.hashes, s.metadata, s.times, s.letter)
	insert.Query(func(rows pgx.Rows) (err error) {
		s.inserted, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(selectDead, s.consumer, s.ids, s.letter).Query(func(rows pgx.Rows) error {
		dead, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if slices.ContainsFunc(dead, func(id string) bool { return slices.Contains(s.inserted, id) }) {
			return failure.AsTransient(errDied)
		}
		return err
	})
}

func (it *item) hasRow() bool { return it.isEvent && !it.ignored }

// The inbox row has an operator's payload, the dead letter the original.
const selectHashes = `
with asked as materialized (select $1::text as consumer, $2::text[] as ids, $3::timestamptz[] as places)
select e.id, h.hash
from asked cross join unnest(asked.ids, asked.places) as e (id, place)
cross join lateral (
    (select i.payload_hash from public.inbox i
    where i.consumer = asked.consumer and i.event_id = e.id and i.event_time = e.place offset 0)
    union all
    (select sha256(d.payload) from public.dead_letter d
    where d.consumer = asked.consumer and d.event_id = e.id and d.remembered and d.id <> $4 offset 0)
) as h (hash)`

// A new statement: the insert's snapshot misses the rows of a transaction that it waited for.
func (s *idSet) compare(ctx context.Context, tx pgx.Tx) error {
	if len(s.inserted) == len(s.items) || len(s.ids) == 0 {
		return nil
	}
	known := make(map[string][][]byte, len(s.ids)) // payload hashes by id
	for _, id := range s.inserted {
		known[id] = [][]byte{s.first[id].hash}
	}
	var ids []string
	var places []time.Time
	for i, id := range s.ids {
		if known[id] == nil {
			ids, places = append(ids, id), append(places, s.places[i])
		}
	}
	rows, _ := tx.Query(ctx, selectHashes, s.consumer, ids, places, s.letter)
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
		case !it.hasRow(), s.first[it.event.ID] == it && slices.Contains(s.inserted, it.event.ID):
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
delete from public.inbox i using unnest($2::text[], $3::timestamptz[]) as e (id, place)
where i.consumer = $1 and i.event_id = e.id and i.event_time = e.place`

	updateTimes = `
update public.inbox i set metadata = i.metadata || jsonb_build_object('processing_time_ms', e.ms)
from unnest($2::text[], $3::timestamptz[], $4::bigint[]) as e (id, place, ms)
where i.consumer = $1 and i.event_id = e.id and i.event_time = e.place`
)

// finishRows deletes the rows of new events whose handler did not run. It stores handler times from a millisecond on.
func (in *Inbox) finishRows(tx *handlerTx, items []*item) {
	var skipped, slow []string
	var skippedAt, slowAt []time.Time
	var times []int64
	for _, it := range items {
		switch id := it.event.ID; it.outcome {
		case Gap, Parked, Dead, Stale:
			if it.hasRow() {
				skipped, skippedAt = append(skipped, id), append(skippedAt, idTime(id))
			}
		case Applied:
			if it.took >= time.Millisecond {
				slow, slowAt, times = append(slow, id), append(slowAt, idTime(id)), append(times, it.took.Milliseconds())
			}
		}
	}
	if len(skipped) > 0 {
		tx.queue.Queue(deleteIDs, in.cfg.Consumer, skipped, skippedAt)
	}
	if len(slow) > 0 {
		tx.queue.Queue(updateTimes, in.cfg.Consumer, slow, slowAt, times)
	}
}

func (it *item) metadata() []byte {
	m := rowMetadata{ProcessingTime: time.Now().UTC()}
	if it.msg != nil {
		m.recordPlace = &recordPlace{it.origin.Group, it.origin.Topic, it.origin.Partition, it.origin.Offset}
	}
	if id := it.event.CorrelationID(); id != it.event.ID {
		m.CorrelationID = id
	}
	encoded, _ := json.Marshal(m)
	return encoded
}

type rowMetadata struct {
	*recordPlace
	CorrelationID    string    `json:"correlation_id,omitempty"`
	ProcessingTime   time.Time `json:"processing_time"` // by the process's clock
	ProcessingTimeMS int64     `json:"processing_time_ms"`
}

type recordPlace struct {
	Group     string `json:"group,omitempty"`
	Topic     string `json:"topic,omitempty"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// timeless is the time of all ids without one. By ce_time, an id that comes back with another one would be applied
// twice.
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

// at is not compared in a forced replay, or of an event that was new when its dead letter was stored.
func (it *item) at() time.Time {
	if it.replay != nil && (it.replay.Remembered || it.replay.Force) {
		return time.Now()
	}
	if at := idTime(it.event.ID); !at.Equal(timeless) {
		return at
	}
	return it.event.Time
}

// Process runs fn in one transaction with the id. It returns [Duplicate] without fn for a processed id, and [Expired]
// with [ErrExpired] for one that may be forgotten. When fn or the commit fails, nothing is written and the outcome is
// [Failed]; call again.
//
// It compares no payload and no version, does not retry, and writes no dead letter. An id has 1 to 255 characters, no
// control character; another one is an [*event.ContractError].
func (in *Inbox) Process(
	ctx context.Context, id string, fn func(context.Context, pgx.Tx) error,
) (outcome Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.HandlerTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, in.cfg.Pool, readCommitted, func(begun pgx.Tx) error {
		tx := &handlerTx{Tx: begun, consumer: in.cfg.Consumer, eventID: id}
		if outcome, err = in.MarkProcessed(ctx, tx, id); err != nil || outcome != Applied {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.flush(ctx)
	})
	if err != nil && outcome != Expired {
		outcome = Failed
	}
	in.metrics.messages.WithLabelValues(string(outcome)).Inc()
	return outcome, err
}

// MarkProcessed records the id in the caller's transaction. It returns [Applied], [Duplicate], or [Expired]
// with [ErrExpired]. It waits for another transaction that records the id.
func (in *Inbox) MarkProcessed(ctx context.Context, tx pgx.Tx, id string) (Outcome, error) {
	if err := event.ValidID(id); err != nil {
		return Failed, err
	}
	it := &item{event: event.Event{ID: id, Time: time.Now()}, isEvent: true, hash: []byte{}}
	ids, batch := in.collectIDs([]*item{it}), &pgx.Batch{}
	ids.insert(batch)
	err := tx.SendBatch(ctx, batch).Close()
	if err == nil {
		err = ids.compare(ctx, tx)
	}
	if err != nil {
		return Failed, fmt.Errorf("insert inbox row: %w", err)
	}
	switch it.outcome {
	case isNew:
		return Applied, nil
	case Expired:
		return Expired, ErrExpired
	}
	return Duplicate, nil
}

const selectProcessed = `
select exists (select from public.inbox where consumer = $1 and event_id = $2 and event_time = $3)`

// IsProcessed reports whether the id is recorded. To decide, use [Inbox.Process]: another transaction may commit first.
func (in *Inbox) IsProcessed(ctx context.Context, tx pgx.Tx, id string) (processed bool, err error) {
	err = tx.QueryRow(ctx, selectProcessed, in.cfg.Consumer, id, idTime(id)).Scan(&processed)
	if err != nil {
		return false, fmt.Errorf("read inbox row: %w", err)
	}
	return processed, nil
}
