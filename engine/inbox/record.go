package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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

// selectParked looks up one key at a time, which "limit" keeps the planner to; see selectWatermarks. A key that is held
// for long may have very many dead letters, of which the first is read alone.
const selectParked = `
with asked as materialized (select $1::text as consumer, $2::bytea[] as keys)
select convert_from(k.key, 'UTF8'), h.version from asked cross join unnest(asked.keys) as k (key)
cross join lateral (
    select d.version from public.dead_letter d
    where d.consumer = asked.consumer and d.key_start = k.key and d.state = 'waiting' and d.holds
    order by d.version limit 1
) as h`

// selectWatermarks looks up one key at a time, which "offset 0" keeps the planner to. With "key = any ($2)" each batch
// would read all keys of the consumer as long as the table has no statistics, its first minutes of load among them.
// Its parameters stand apart as those of selectHashes do.
const selectWatermarks = `
with asked as materialized (select $1::text as consumer, $2::text[] as keys)
select k.key, w.version from asked cross join unnest(asked.keys) as k (key)
cross join lateral (
    select m.version from public.inbox_watermark m where m.consumer = asked.consumer and m.key = k.key offset 0
) as w`

// state is what the database said about the events and keys of a transaction.
type state struct {
	inserted   map[string]bool
	parked     map[string]int64 // key -> lowest version that holds it, 0 for one without
	watermarks map[string]int64
	hashes     map[string][]byte // of the ids that are new in this transaction
}

// idTable is the inbox table: which ids a consumer has processed. What it reads of keys travels with the inserts.
type idTable struct {
	consumer  string
	versioned bool
}

// record inserts the inbox rows of the items, in one round trip, and gives each item its outcome: Applied for those
// that are new. What the ids mean that were there before may be known no sooner than the commit; see compareHashes. The
// keys' states are read by later statements than the insert, since that one may have waited: a snapshot from before
// would not show what the twin committed.
func (t *idTable) record(ctx context.Context, tx pgx.Tx, items []*item) (*state, error) {
	unique, err := uniqueItems(items)
	if err != nil {
		return nil, err
	}
	s, err := t.insert(ctx, tx, unique, keysOf(items))
	if err != nil {
		return nil, err
	}
	var known []*item
	for _, it := range items {
		if !it.ignored && !it.isNew(s) {
			known = append(known, it)
		}
	}
	return s, t.compareHashes(ctx, tx, known)
}

// isNew gives the item its outcome where the insert alone says it: an id that comes twice in a batch is new the first
// time, and compared with that the second. It reports false for an id that was there before.
func (it *item) isNew(s *state) bool {
	if s.inserted[it.entry.id] {
		delete(s.inserted, it.entry.id)
		if s.hashes == nil {
			s.hashes = make(map[string][]byte)
		}
		s.hashes[it.entry.id] = it.entry.hash
		it.outcome = Applied
		return true
	}
	hash, known := s.hashes[it.entry.id]
	if known {
		it.outcome = it.sameAs(hash)
	}
	return known
}

var errOtherTime = errors.New("an id is in the batch with two times")

// uniqueItems are the items to record: without those that no handler wants and without an id's second occurrence in the
// batch. It refuses one with another time, which an id that carries none may come with: that the inbox does not
// remember the first one's says nothing of the second.
func uniqueItems(items []*item) ([]*item, error) {
	if len(items) == 1 && !items[0].ignored {
		return items, nil
	}
	seen := make(map[string]time.Time, len(items))
	unique := make([]*item, 0, len(items))
	for i, it := range items {
		if it.ignored {
			continue
		}
		at, again := seen[it.entry.id]
		switch {
		case !again:
			seen[it.entry.id] = it.entry.at
			unique = append(unique, it)
		case !at.Equal(it.entry.at):
			return nil, &itemError{i, errOtherTime}
		}
	}
	return unique, nil
}

// insert inserts the items' rows and reads the state of the keys.
func (t *idTable) insert(ctx context.Context, tx pgx.Tx, items []*item, keys []string) (*state, error) {
	if len(items) == 1 && len(keys) <= 1 {
		return t.insertOne(ctx, tx, items[0])
	}
	s := &state{inserted: make(map[string]bool, len(items))}
	batch := &pgx.Batch{}
	if len(items) > 0 {
		t.queueInsert(batch, items, s)
	}
	if len(keys) > 0 {
		names := make([][]byte, len(keys))
		for i, key := range keys {
			names[i] = []byte(key)
		}
		s.parked = make(map[string]int64)
		batch.Queue(selectParked, t.consumer, names).Query(collect(s.parked))
	}
	if t.versioned && len(keys) > 0 {
		s.watermarks = make(map[string]int64, len(keys))
		batch.Queue(selectWatermarks, t.consumer, textColumn(keys)).Query(collect(s.watermarks))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert inbox rows: %w", routed(err))
	}
	return s, nil
}

func (t *idTable) queueInsert(batch *pgx.Batch, items []*item, s *state) {
	batch.Queue(insertEntries, t.consumer, columnOf(items, idOf), columnOf(items, placeOf), columnOf(items, timeOf),
		columnOf(items, typeOf), columnOf(items, hashOf), textColumn(encodeAll(items))).
		Query(func(rows pgx.Rows) error {
			var id string
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				s.inserted[id] = true
				return nil
			})
			return err
		})
}

// collect reads rows of a text and a number into the map.
func collect(into map[string]int64) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var name string
		var number int64
		_, err := pgx.ForEachRow(rows, []any{&name, &number}, func() error {
			into[name] = number
			return nil
		})
		return err
	}
}

// keysOf are the keys of the items, each once.
func keysOf(items []*item) []string {
	if len(items) == 1 {
		if key := items[0].event.Key; key != "" {
			return []string{key}
		}
		return nil
	}
	seen := make(map[string]bool, len(items))
	var keys []string
	for _, it := range items {
		if key := it.event.Key; key != "" && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}
