package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

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
	it.jumps = version-known > o.maxJump
	excused := it.acceptGap && (it.force || !it.jumps) || o.policy(it) == GapAllow && !it.jumps
	if !excused {
		var passed int64
		err = tx.QueryRow(ctx, countPassed, o.consumer, key, known, version, []byte(key), o.passesDead()).
			Scan(&passed)
		open = passed < version-known-1
	}
	if err == nil && !open {
		err = Queue(ctx, tx, forgetPassed, o.consumer, key, version)
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
func (o *keyOrder) passOver(ctx context.Context, tx pgx.Tx, it *item, s *state, moved *moves) error {
	it.outcome = Ignored
	switch known := s.watermarks[it.event.Key]; {
	case it.event.Version <= known:
		return nil
	case it.event.Version == known+1:
		o.move(it, s, moved, known)
		return nil
	}
	if err := Queue(ctx, tx, insertPassed, o.consumer, it.event.Key, it.event.Version); err != nil {
		return fmt.Errorf("insert passed version: %w", err)
	}
	_, it.unblocks = s.parked[it.event.Key] // what is parked may have waited for this one too
	return nil
}
