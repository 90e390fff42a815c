package operate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
)

func action(c audit.Change, verb string, id int64, before, after deadletter.State) audit.Action {
	return c.Action(verb, deadletter.Kind, strconv.FormatInt(id, 10), string(before), string(after))
}

// discardChunk bounds one transaction: what a consumer must wait for that parks behind a dead letter under discard.
const discardChunk = 500

// The dead letters are locked in the order of their ids, as the consumers lock them that park behind one.
const discardLetters = `
with picked as (
    select id from public.dead_letter where %s order by id limit %d for update
)
update public.dead_letter d set state = 'discarded', settled_at = clock_timestamp()
from picked p where d.id = p.id returning d.id`

// How many dead letters a filter picks, up to its limit.
const countLetters = `select count(*) from (select from public.dead_letter where %s limit nullif(%d, 0)) l`

// Discard settles waiting dead letters without handling them. A discarded dead letter does not hold its key any more:
// those that parked behind it can be replayed then. It works in chunks: after an error or a kill, what was counted is
// discarded, and another call goes on. A filter that picks everything is refused with [CodeMissingFilter].
func (s *Store) Discard(ctx context.Context, f Filter, c audit.Change) (audit.Result, error) {
	result := audit.Result{DryRun: c.DryRun}
	if err := f.check(); err != nil {
		return result, err
	}
	if !f.Selective() {
		return result, &Error{CodeMissingFilter, "say which dead letters to discard"}
	}
	if f.State != "" && f.State != deadletter.Waiting {
		return result, &Error{CodeNotWaiting, "only waiting dead letters can be discarded"}
	}
	f.State = deadletter.Waiting
	var matched int64
	condition, args := f.Where(1)
	err := s.pool.QueryRow(ctx, fmt.Sprintf(countLetters, condition, f.Limit), args...).Scan(&matched)
	if err != nil {
		return result, fmt.Errorf("count dead letters: %w", err)
	}
	if c.DryRun {
		result.Count = matched
		return result, nil
	}
	for result.Count < matched {
		n, err := s.discardSome(ctx, f, c, min(discardChunk, matched-result.Count))
		if err != nil || n == 0 { // 0: another operator settled the rest
			return result, err
		}
		result.Count += n
		c.Tell(result.Count)
	}
	return result, nil
}

func (s *Store) discardSome(ctx context.Context, f Filter, c audit.Change, limit int64) (n int64, err error) {
	condition, args := f.Where(1)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, fmt.Sprintf(discardLetters, condition, limit), args...)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		actions := make([]audit.Action, len(ids))
		for i, id := range ids {
			actions[i] = action(c, "discard", id, deadletter.Waiting, deadletter.Discarded)
		}
		n = int64(len(ids))
		return audit.Record(ctx, tx, actions...)
	})
	if err != nil {
		return 0, fmt.Errorf("discard dead letters: %w", err)
	}
	return n, nil
}
