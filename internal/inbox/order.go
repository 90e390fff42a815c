package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// GapPolicy says what a versioned consumer does with an event whose predecessor it has not applied. The first event of
// a key is one, too, unless its version is 1.
type GapPolicy string

const (
	// GapPark puts the event and what follows it in its key aside, and takes them up again as soon as the predecessor
	// is applied. The partition goes on meanwhile. Right where an event says only what changed, and the default.
	GapPark GapPolicy = "park"
	// GapWait tries again for Config.GapWait, in which another owner of the partition or a replay may apply the
	// predecessor, and then parks. The partition waits meanwhile, for at most a tenth of its time.
	GapWait GapPolicy = "wait"
	// GapAllow applies the event and skips its predecessors when they come: it declares that every event of the type
	// carries the whole state. A jump of more than Config.MaxJump parks all the same.
	GapAllow GapPolicy = "allow"
)

func (p GapPolicy) valid() bool { return p == GapAllow || p == GapWait || p == GapPark }

// keyOrder keeps the versions of each key in order.
type keyOrder struct{ cfg *Config }

// keyState is what the database said of a key, and what the transaction has made of it.
type keyState struct {
	key     string
	held    bool  // by a dead letter
	from    int64 // the lowest version of those that hold it, 0 for one without
	found   int64 // the watermark that was there before
	version int64 // the watermark as the transaction leaves it; 0: none
}

func (k keyState) moved() bool { return k.version > max(k.found, 0) }

func (k *keyState) isHeld(version int64) { k.held, k.from = true, version }
func (k *keyState) isAt(version int64)   { k.found, k.version = version, version }

// noWatermark stands for the version that is found of a key that has no row yet.
const noWatermark = -1

// keysOf are the keys of the items, each once; the items know theirs from now on.
func keysOf(items []*item) []keyState {
	keys, known := make([]keyState, 0, len(items)), make(map[string]*keyState, len(items))
	for _, it := range items {
		if it.key = known[it.event.Key]; it.key == nil {
			keys = append(keys, keyState{key: it.event.Key, found: noWatermark})
			it.key = &keys[len(keys)-1]
			known[it.event.Key] = it.key
		}
	}
	return keys
}

// selectParked looks up one key at a time, which "limit" keeps the planner to; see selectWatermarks. A key that is held
// for long may have very many dead letters, of which the first is read alone.
const selectParked = `
with asked as materialized (select $1::text as consumer, $2::text[] as keys)
select k.n, h.version from asked cross join unnest(asked.keys) with ordinality as k (key, n)
cross join lateral (
    select d.version from public.dead_letter d
    where d.consumer = asked.consumer and d.key_start = convert_to(k.key, 'UTF8') and d.state = 'waiting' and d.holds
    order by d.version limit 1
) as h`

// selectWatermarks looks up one key at a time, which "offset 0" keeps the planner to. With "key = any ($2)" each batch
// would read all keys of the consumer as long as the table has no statistics, its first minutes of load among them.
// Its parameters stand apart as those of selectTwins do.
const selectWatermarks = `
with asked as materialized (select $1::text as consumer, $2::text[] as keys)
select k.n, w.version from asked cross join unnest(asked.keys) with ordinality as k (key, n)
cross join lateral (
    select m.version from public.inbox_watermark m where m.consumer = asked.consumer and m.key = k.key offset 0
) as w`

// ask asks what holds the keys, and for their watermarks.
func (o *keyOrder) ask(batch *pgx.Batch, keys []keyState) {
	names := column[*textValue]{len(keys), func(i int) *textValue { return (*textValue)(&keys[i].key) }}
	batch.Queue(selectParked, o.cfg.Consumer, names).Query(eachKey(keys, (*keyState).isHeld))
	if o.cfg.Versioned {
		batch.Queue(selectWatermarks, o.cfg.Consumer, names).Query(eachKey(keys, (*keyState).isAt))
	}
}

// eachKey reads rows of a key's number, from 1, and a version.
func eachKey(keys []keyState, note func(*keyState, int64)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var n int
		var version int64
		_, err := pgx.ForEachRow(rows, []any{&n, &version}, func() error {
			note(&keys[n-1], version)
			return nil
		})
		return err
	}
}

// policy is what to do with a gap before an event of the item's type.
func (o *keyOrder) policy(it *item) GapPolicy {
	return cmp.Or(o.cfg.Handlers.OnGap(it.event.Type), o.cfg.OnGap)
}

var (
	errGap       = errors.New("an earlier version of the key is missing")
	errJump      = errors.New("the version is too far above the key's")
	errNoVersion = PermanentAs(CodeNoVersion, errors.New("the event carries no version, and others of its key do"))
	errBehind    = errors.New("an earlier event of the key is parked")
	errMoved     = failure.AsTransient(errors.New("another transaction applied an event of the key meanwhile"))
)

// place finds the event's place behind what its key has seen. The error errGap says that it may still be in order when
// it is tried again.
func (o *keyOrder) place(ctx context.Context, tx pgx.Tx, it *item) (Outcome, error) {
	k, version := it.key, it.event.Version
	if k.held && (version == 0 || version > k.from) {
		k.from = min(k.from, version) // its dead letter holds the key too
		return Parked, nil
	}
	switch {
	case !o.cfg.Versioned:
		return Applied, nil
	case version == 0 && (k.found != noWatermark || k.version > 0): // it may belong before or behind any of them
		return Failed, errNoVersion
	case version == 0: // as the first builds wrote it, and others still may: the partition has the order
		return Applied, nil
	case version <= k.version:
		return Stale, nil
	}
	if version > k.version+1 {
		open, err := o.hasGap(ctx, tx, it)
		// A partition that has waited lately parks its next gap at once: if thousands of keys have one, the partition loses
		// a tenth of its time and not a wait for each of them.
		waits := !it.waited && time.Since(it.partition.WaitedAt) >= 9*o.cfg.GapWait
		switch {
		case err != nil:
			return Failed, err
		case open && waits && o.policy(it) == GapWait && !it.jumps:
			return Failed, errGap
		case open:
			k.isHeld(version)
			return Gap, nil
		}
	}
	k.version, it.unblocks = version, k.held // what is parked is above it, and may have waited for it
	return Applied, nil
}

// parkedFor is why the item is parked, with the code of its dead letter.
func (it *item) parkedFor() *codedError {
	switch {
	case it.outcome == Parked:
		return &codedError{CodeParked, errBehind}
	case it.jumps:
		return &codedError{CodeJump, errJump}
	}
	return &codedError{CodeGap, errGap}
}

// A missing version is passed over where its type has no handler, or where an operator has discarded its event. With
// DeadPass an event that was given up is passed over at once.
const countPassed = `
select count(*) from (
    select p.version from public.inbox_passed p
    where p.consumer = $1 and p.key = $2 and p.version > $3 and p.version < $4
    union
    select d.version from public.dead_letter d
    where d.consumer = $1 and d.key_start = $5 and d.version > $3 and d.version < $4 and d.state = 'discarded'
    union
    select d.version from public.dead_letter d
    where d.consumer = $1 and d.key_start = $5 and d.version > $3 and d.version < $4 and $6
        and d.state = 'waiting' and not d.holds and d.remembered
) as passed`

const forgetPassed = `delete from public.inbox_passed where consumer = $1 and key = $2 and version <= $3`

// hasGap says whether a version between the key's watermark and the event's is missing that the event must not go
// without. Only an event that skips ahead costs this question.
func (o *keyOrder) hasGap(ctx context.Context, tx pgx.Tx, it *item) (open bool, err error) {
	key, known, version := it.event.Key, it.key.version, it.event.Version
	it.jumps = version-known > o.cfg.MaxJump
	excused := it.acceptGap && (it.force || !it.jumps) || o.policy(it) == GapAllow && !it.jumps
	if !excused {
		var passed int64
		err = tx.QueryRow(ctx, countPassed, o.cfg.Consumer, key, known, version, []byte(key),
			o.cfg.OnDead == DeadPass).Scan(&passed)
		open = passed < version-known-1
	}
	if err == nil && !open {
		err = Queue(ctx, tx, forgetPassed, o.cfg.Consumer, key, version)
	}
	if err != nil {
		return false, fmt.Errorf("look for passed versions: %w", err)
	}
	return open, nil
}

const insertPassed = `
insert into public.inbox_passed (consumer, key, version) values ($1, $2, $3) on conflict do nothing`

// passOver counts a version whose type has no handler here, or every event of such a type would leave a gap. Nothing
// else is recorded of it.
func (o *keyOrder) passOver(ctx context.Context, tx pgx.Tx, it *item) error {
	k, version := it.key, it.event.Version
	it.outcome = Ignored
	if version <= k.version {
		return nil
	}
	it.unblocks = k.held // what is parked may have waited for this one too
	if version == k.version+1 {
		k.version = version
		return nil
	}
	if err := Queue(ctx, tx, insertPassed, o.cfg.Consumer, k.key, version); err != nil {
		return fmt.Errorf("insert passed version: %w", err)
	}
	return nil
}

// The rows are locked in the order of their keys, so that two of these cannot wait for each other. A watermark that is
// no longer what the decision rested on is left alone, and then the statement fails: it divides by zero.
const advanceWatermarks = `
with moved as (
    insert into public.inbox_watermark as w (consumer, key, version)
    select $1, m.key, m.upto from unnest($2::text[], $3::bigint[]) as m (key, upto) order by m.key
    on conflict (consumer, key) do update set version = excluded.version
    where (w.key, w.version) in (select * from unnest($2::text[], $4::bigint[]))
    returning 1
)
select 1 / (count(*) = cardinality($2::text[]))::int from moved`

const advanceWatermark = `
with moved as (
    insert into public.inbox_watermark as w (consumer, key, version) values ($1, $2, $3)
    on conflict (consumer, key) do update set version = excluded.version where w.version = $4
    returning 1
)
select 1 / count(*) from moved`

// insertWatermarks is for keys of which none has a watermark yet: half the work and a sixth less to log. The statement
// fails by itself where another transaction was faster.
const insertWatermarks = `
insert into public.inbox_watermark (consumer, key, version)
select $1, m.key, m.upto from unnest($2::text[], $3::bigint[]) as m (key, upto) order by m.key`

const insertWatermark = `insert into public.inbox_watermark (consumer, key, version) values ($1, $2, $3)`

// advance takes the rows of the keys whose watermark has moved before any handler runs, so that transactions on one key
// take turns. It is queued: it travels with the handlers' own writes and, as it fails by itself, with the commit.
func (o *keyOrder) advance(ctx context.Context, tx pgx.Tx, states []keyState) error {
	isNew := true
	keys, from, to := make([]string, 0, len(states)), make([]int64, 0, len(states)), make([]int64, 0, len(states))
	for _, k := range states {
		if k.moved() {
			isNew = isNew && k.found == noWatermark
			keys, from, to = append(keys, k.key), append(from, max(k.found, 0)), append(to, k.version)
		}
	}
	q := queued{refusal: errMoved}
	switch {
	case len(keys) == 1 && isNew:
		q.sql, q.args = insertWatermark, []any{o.cfg.Consumer, keys[0], to[0]}
	case len(keys) == 1:
		q.sql, q.args = advanceWatermark, []any{o.cfg.Consumer, keys[0], to[0], from[0]}
	case isNew:
		q.sql, q.args = insertWatermarks, []any{o.cfg.Consumer, keys, to}
	default:
		q.sql, q.args = advanceWatermarks, []any{o.cfg.Consumer, keys, to, from}
	}
	return enqueue(ctx, tx, q)
}

// The last dead letter of each key, since a replay comes to it at the end. A statement that waits for a row looks at it
// again when the wait is over, and leaves it out if it does not hold its key any more. The order is that of ids
// wherever several dead letters are locked. Keys and ids are looked up one at a time, as in selectParked: the condition
// that a dead letter holds stands outside, or an index of all that do would serve for finding an id.
const selectHolders = `
select
from (
    select h.id from unnest($2::text[]) as k (key)
    cross join lateral (
        select d.id from public.dead_letter d
        where d.consumer = $1 and d.key_start = convert_to(k.key, 'UTF8') and d.state = 'waiting' and d.holds
        order by d.version desc, d.id desc limit 1
    ) as h
    order by h.id offset 0
) as last
cross join lateral (select d.state, d.holds from public.dead_letter d where d.id = last.id for share) as l
where l.state = 'waiting' and l.holds`

// lockHolders locks the dead letters that hold keys of this transaction, so that none is released before what parks
// behind it is committed. Without it a record could park behind nothing:
//
//	consumer  reads that dead letter 5 holds the key
//	replay    locks dead letter 5, runs its handler, settles it, commits
//	replay    finds no other dead letter of the key and goes on to the next key
//	consumer  commits event 6 as parked: no replay will come for it
//
// With the lock one of them waits. If the consumer is first, the replay cannot settle the key's last dead letter before
// event 6 is there to be found. If the replay is first, the consumer waits for its commit, sees that the dead letter is
// gone, and asks anew what holds the key and how far its versions are. In the normal case nothing is held or asked.
func (o *keyOrder) lockHolders(ctx context.Context, tx pgx.Tx, keys []keyState) error {
	for {
		var held []string
		for _, k := range keys {
			if k.held {
				held = append(held, k.key)
			}
		}
		if len(held) == 0 {
			return nil
		}
		locked, err := tx.Exec(ctx, selectHolders, o.cfg.Consumer, held)
		if err != nil {
			return fmt.Errorf("lock dead letters: %w", err)
		}
		if locked.RowsAffected() == int64(len(held)) {
			return nil
		}
		batch := &pgx.Batch{}
		for i := range keys {
			keys[i] = keyState{key: keys[i].key, found: noWatermark}
		}
		o.ask(batch, keys)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("ask for parked keys: %w", err)
		}
	}
}
