package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Edit is what an operator wants to be replayed instead of what came. A nil field leaves that part as it is.
type Edit struct {
	Set     []deadletter.Header // each replaces those headers of its name, or comes last
	Payload []byte
}

const updateEdited = `
update public.dead_letter
set edited_headers = $2, edited_payload = $3, edited_by = $4, edited_at = clock_timestamp()
where id = $1`

// Edit puts another record in the place of the one that came, which stays readable beside it, with the editor's name.
// Nothing is checked but that the dead letter waits: the new content is decoded and checked when it is replayed, by the
// consumer that knows its contract. A later edit replaces an earlier one; the audit trail names both authors.
func (s *Store) Edit(ctx context.Context, id int64, e Edit, c audit.Change) (l deadletter.Letter, err error) {
	if len(e.Set) == 0 && e.Payload == nil {
		return l, &Error{CodeNothingToEdit, "neither headers nor payload are given"}
	}
	if slices.ContainsFunc(e.Set, func(h deadletter.Header) bool { return h.Name == "" }) {
		return l, &Error{CodeInvalidHeaders, "a header has no name"}
	}
	err = c.Make(ctx, s.pool, func(tx pgx.Tx) (none audit.Action, err error) {
		l, err := get(ctx, tx, id, "for update")
		if err != nil {
			return none, err
		}
		if l.State != deadletter.Waiting {
			return none, &Error{CodeNotWaiting, fmt.Sprintf("dead letter %d is %s", id, l.State)}
		}
		headers, payload := l.Current()
		if e.Payload != nil {
			payload = e.Payload
		}
		for _, set := range e.Set {
			headers = slices.DeleteFunc(slices.Clone(headers), func(h deadletter.Header) bool { return h.Name == set.Name })
			headers = append(headers, set)
		}
		encoded, err := deadletter.EncodeHeaders(headers)
		if err != nil {
			return none, err
		}
		if _, err := tx.Exec(ctx, updateEdited, id, encoded, payload, c.By); err != nil {
			return none, fmt.Errorf("edit dead letter: %w", err)
		}
		return action(c, "edit", id, l.State, l.State), err
	})
	if err != nil {
		return l, err
	}
	return get(ctx, s.pool, id, "")
}

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
