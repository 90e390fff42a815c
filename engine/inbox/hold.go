package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The last dead letter of each key, since a replay comes to it at the end. A statement that waits for a row looks at it
// again when the wait is over, and leaves it out if it does not hold its key any more. The order is that of ids
// wherever several dead letters are locked. Keys and ids are looked up one at a time, as in selectParked: the condition
// that a dead letter holds stands outside, or an index of all that do would serve for finding an id.
const selectHolders = `
select convert_from(l.key, 'UTF8')
from (
    select h.id from unnest($2::bytea[]) as k (key)
    cross join lateral (
        select d.id from public.dead_letter d
        where d.consumer = $1 and d.key_start = k.key and d.state = 'waiting' and d.holds
        order by d.version desc, d.id desc limit 1
    ) as h
    order by h.id offset 0
) as last
cross join lateral (select d.key, d.state, d.holds from public.dead_letter d where d.id = last.id for share) as l
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
		names := make([][]byte, 0, len(s.parked))
		for key := range s.parked {
			names = append(names, []byte(key))
		}
		rows, _ := tx.Query(ctx, selectHolders, o.consumer, names)
		held, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("lock dead letters: %w", err)
		}
		if len(held) == len(s.parked) {
			return nil
		}
		if err := o.readAgain(ctx, tx, keysOf(items), s); err != nil {
			return err
		}
	}
	return nil
}

// readAgain reads what holds the keys, and their watermarks, as they are now.
func (o *keyOrder) readAgain(ctx context.Context, tx pgx.Tx, keys []string, s *state) error {
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = []byte(key)
	}
	s.parked, s.watermarks = make(map[string]int64), make(map[string]int64)
	batch := &pgx.Batch{}
	batch.Queue(selectParked, o.consumer, names).Query(collect(s.parked))
	if o.versioned {
		batch.Queue(selectWatermarks, o.consumer, keys).Query(collect(s.watermarks))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("ask for parked keys: %w", err)
	}
	return nil
}
