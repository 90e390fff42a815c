package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
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
func (o *keyOrder) place(ctx context.Context, tx pgx.Tx, it *item, s *state) (Outcome, error) {
	key, version := it.event.Key, it.event.Version
	first, blocked := s.parked[key]
	if blocked && (version == 0 || version > first) {
		s.parked[key] = min(first, version) // its dead letter holds the key too
		return Parked, nil
	}
	known, numbered := s.watermarks[key]
	switch {
	case !o.cfg.Versioned:
		return Applied, nil
	case version == 0 && numbered: // it may belong before or behind any of them
		return Failed, errNoVersion
	case version == 0: // as the first builds wrote it, and others still may: the partition has the order
		return Applied, nil
	}
	if version <= known {
		return Stale, nil
	}
	if version > known+1 {
		open, err := o.hasGap(ctx, tx, it, known)
		if err != nil {
			return Failed, err
		}
		if open && !it.waited && o.policy(it) == GapWait && !it.jumps {
			return Failed, errGap
		}
		if open {
			if s.parked == nil {
				s.parked = make(map[string]int64)
			}
			s.parked[key] = version
			return Gap, nil
		}
	}
	o.move(it, s)
	return Applied, nil
}

// move raises the key's watermark to the item's version.
func (o *keyOrder) move(it *item, s *state) {
	key := it.event.Key
	if s.moved == nil {
		s.moved = make(map[string]int64)
	}
	if _, again := s.moved[key]; !again {
		s.moved[key] = noWatermark
		if known, there := s.watermarks[key]; there {
			s.moved[key] = known
		}
	}
	if s.watermarks == nil {
		s.watermarks = make(map[string]int64)
	}
	s.watermarks[key] = it.event.Version
	_, it.unblocks = s.parked[key] // what is parked is above it, and may have waited for it
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
func (o *keyOrder) hasGap(ctx context.Context, tx pgx.Tx, it *item, known int64) (open bool, err error) {
	key, version := it.event.Key, it.event.Version
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
func (o *keyOrder) passOver(ctx context.Context, tx pgx.Tx, it *item, s *state) error {
	it.outcome = Ignored
	switch known := s.watermarks[it.event.Key]; {
	case it.event.Version <= known:
		return nil
	case it.event.Version == known+1:
		o.move(it, s)
		return nil
	}
	if err := Queue(ctx, tx, insertPassed, o.cfg.Consumer, it.event.Key, it.event.Version); err != nil {
		return fmt.Errorf("insert passed version: %w", err)
	}
	_, it.unblocks = s.parked[it.event.Key] // what is parked may have waited for this one too
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

// noWatermark stands for the version of a key that has no row yet.
const noWatermark = -1

// advance takes the keys' rows before any handler runs, so that transactions on one key take turns. It is queued: it
// travels with the handlers' own writes and, as it fails by itself, with the commit.
func (o *keyOrder) advance(ctx context.Context, tx pgx.Tx, s *state) error {
	isNew := true
	keys, from, to := make([]string, 0, len(s.moved)), make([]int64, 0, len(s.moved)), make([]int64, 0, len(s.moved))
	for key, before := range s.moved {
		isNew = isNew && before == noWatermark
		keys, from, to = append(keys, key), append(from, max(before, 0)), append(to, s.watermarks[key])
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
func (o *keyOrder) lockHolders(ctx context.Context, tx pgx.Tx, items []*item, s *state) error {
	for len(s.parked) > 0 {
		held, err := tx.Exec(ctx, selectHolders, o.cfg.Consumer, slices.Collect(maps.Keys(s.parked)))
		if err != nil {
			return fmt.Errorf("lock dead letters: %w", err)
		}
		if held.RowsAffected() == int64(len(s.parked)) {
			return nil
		}
		batch := &pgx.Batch{}
		s.queue(batch, o.cfg, keysOf(items))
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("ask for parked keys: %w", err)
		}
	}
	return nil
}
