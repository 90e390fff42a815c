package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// maxJump bounds an event's version above its key's, in the order Latest.
const maxJump = 1000

type key struct {
	name       string
	version    int64
	parkedFrom *int64 // lowest version of its waiting dead letters
	exists     bool   // it has a row, which is locked
	changed    bool
}

type keys map[string]*key

// The rows are locked in the order of the keys, so two transactions cannot deadlock. "materialized" keeps the planner
// from planning each call anew, "offset 0" from reading all keys while the table has no statistics.
const selectKeys = `
with asked as materialized (select $1::text as consumer, $2::text[] as keys)
select k.key, s.version, s.parked_from from asked cross join unnest(asked.keys) as k (key)
cross join lateral (select i.version, i.parked_from from public.inbox_key i
    where i.consumer = asked.consumer and i.key = k.key offset 0 for update) as s`

func collectKeys(order Order, items []*item) keys {
	if order == Unordered {
		return nil
	}
	ks := make(keys, len(items))
	for _, it := range items {
		if it.isEvent && ks[it.event.Key] == nil {
			ks[it.event.Key] = &key{name: it.event.Key}
		}
	}
	return ks
}

// A key without a row has nothing to lock: see saveKeys.
func (ks keys) lock(batch *pgx.Batch, consumer string) {
	if len(ks) == 0 {
		return
	}
	batch.Queue(selectKeys, consumer, slices.Sorted(maps.Keys(ks))).Query(func(rows pgx.Rows) error {
		var found key
		_, err := pgx.ForEachRow(rows, []any{&found.name, &found.version, &found.parkedFrom}, func() error {
			k := ks[found.name]
			k.version, k.parkedFrom, k.exists = found.version, found.parkedFrom, true
			return nil
		})
		return err
	})
}

// of returns nil for an item without a key, or in an unordered consumer.
func (ks keys) of(it *item) *key {
	if !it.isEvent {
		return nil
	}
	return ks[it.event.Key]
}

// The reasons of dead letters that have one text.
var (
	errConflict error = &codedError{CodeConflict, Permanent(errors.New(
		"the id came before with another payload, and was applied or given up"))}
	errTooOld    error = &codedError{CodeTooOld, Permanent(ErrExpired)}
	errParked    error = &codedError{CodeParked, errors.New("an earlier event of the key is a dead letter")}
	errNoVersion error = &codedError{
		CodeNoVersion, Permanent(errors.New("the event has no version, and earlier ones of its key had")),
	}
	errJump error = &codedError{
		CodeJump, Permanent(fmt.Errorf("the version is more than %d above its key's", maxJump)),
	}
)

// decide returns the item's outcome, and the reason of a dead letter. Applied means that its handler is to run. The
// numbers are those of doc.go.
func (it *item) decide(order Order, k *key) (Outcome, error) {
	version, acceptGap := it.event.Version, it.replay != nil && it.replay.AcceptGap
	switch it.outcome { // 4
	case Conflict:
		return Conflict, errConflict
	case Expired:
		if k != nil && version > 0 && version <= k.version { // its turn has passed
			return Duplicate, nil
		}
		return Expired, cmp.Or(it.givenUpFor, errTooOld)
	case Duplicate:
		if order == Strict {
			k.raise(version)
		}
		return Duplicate, nil
	}
	switch {
	case k != nil && version > 0 && version <= k.version: // 5
		return Stale, nil
	case it.givenUpFor != nil: // 6
		return Dead, it.givenUpFor
	case k == nil, version == 0 && it.ignored: // it has no place in an order
	case it.replay == nil && order == Strict && k.isParked(version): // 7
		return Parked, errParked
	case version == 0 && k.version > 0: // 8
		return Dead, errNoVersion
	case version > k.version+1 && order == Strict && !acceptGap: // 9
		return Gap, &codedError{CodeGap, fmt.Errorf(
			"version %d waits for %d: an earlier version of the key is missing", version, k.version+1)}
	case version > k.version+maxJump && k.version > 0 && order == Latest && !acceptGap:
		return Dead, errJump
	}
	if k != nil && version > 0 {
		k.version, k.changed = version, true
	}
	return Applied, nil // 10
}

// raise is for a duplicate with the key's next version: its producer's database went back.
func (k *key) raise(version int64) {
	if version == k.version+1 && (k.parkedFrom == nil || version < *k.parkedFrom) {
		k.version, k.changed = version, true
	}
}

func (k *key) isParked(version int64) bool {
	return k.parkedFrom != nil && (version == 0 || version > *k.parkedFrom)
}

func (k *key) hold(version int64) {
	if k.parkedFrom == nil || version < *k.parkedFrom {
		k.parkedFrom, k.changed = &version, true
	}
}

const insertKeys = `
insert into public.inbox_key (consumer, key, version, parked_from)
select $1, k.* from unnest($2::text[], $3::bigint[], $4::bigint[]) as k (key, version, parked) order by 2`

const updateKeys = insertKeys + `
on conflict (consumer, key) do update set version = excluded.version, parked_from = excluded.parked_from`

// If another transaction inserted a key first, everything is rolled back and decided anew.
func (ks keys) save(queue *pgx.Batch, consumer string) {
	ks.write(queue, updateKeys, consumer, true)
	ks.write(queue, insertKeys, consumer, false)
}

func (ks keys) write(queue *pgx.Batch, sql, consumer string, exists bool) {
	var names []string
	var versions []int64
	var parked []*int64
	for _, k := range ks {
		if k.changed && k.exists == exists {
			names, versions, parked = append(names, k.name), append(versions, k.version), append(parked, k.parkedFrom)
		}
	}
	if len(names) > 0 {
		queue.Queue(sql, consumer, names, versions, parked)
	}
}
