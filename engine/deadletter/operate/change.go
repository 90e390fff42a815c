package operate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
)

// Change says who changes something and why. By is required.
type Change struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"` // count, change nothing
	// OnProgress, if set, is told how many are changed so far, in the goroutine of the change.
	OnProgress func(changed int) `json:"-"`
}

func (c Change) check() error {
	if c.By == "" {
		return &Error{CodeMissingOperator, "say who makes the change"}
	}
	return nil
}

func (c Change) progress(changed int) {
	if c.OnProgress != nil {
		c.OnProgress(changed)
	}
}

func (c Change) action(verb string, id int64, before, after deadletter.State) audit.Action {
	return audit.Action{
		By: c.By, Verb: verb, Reason: c.Reason, Kind: deadletter.Kind, Subject: strconv.FormatInt(id, 10),
		Before: string(before), After: string(after),
	}
}

// record leaves the audit row of a change that does not settle the dead letter.
func (c Change) record(ctx context.Context, tx pgx.Tx, verb string, l deadletter.Letter) error {
	return audit.Record(ctx, tx, c.action(verb, l.ID, l.State, l.State))
}

// Result says what a change of many dead letters did.
type Result struct {
	Matched int         `json:"matched"`          // dead letters that were meant
	Changed int         `json:"changed"`          // of these; 0 in a dry run
	Failed  int         `json:"failed,omitempty"` // lines of an import that were not taken
	Errors  []LineError `json:"errors,omitempty"` // of the first hundred of these
}

const maxLineErrors = 100

func (r *Result) fail(line LineError) {
	r.Failed++
	if len(r.Errors) < maxLineErrors {
		r.Errors = append(r.Errors, line)
	}
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

// Discard settles waiting dead letters without handling them. A discarded dead letter does not hold its key any more:
// those that parked behind it can be replayed then. It works in chunks: after an error or a kill, what was counted is
// discarded, and another call goes on. A filter that picks everything is refused with [CodeMissingFilter].
func (s *Store) Discard(ctx context.Context, f Filter, c Change) (Result, error) {
	var result Result
	if err := c.check(); err != nil {
		return result, err
	}
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
	matched, err := s.count(ctx, f)
	result.Matched = matched
	for err == nil && !c.DryRun && result.Changed < matched {
		n := 0
		n, err = s.discardSome(ctx, f, c, min(discardChunk, matched-result.Changed))
		result.Changed += n
		if n == 0 {
			break // another operator settled the rest
		}
		c.progress(result.Changed)
	}
	return result, err
}

func (s *Store) discardSome(ctx context.Context, f Filter, c Change, limit int) (n int, err error) {
	condition, args := f.Where(1)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, fmt.Sprintf(discardLetters, condition, limit), args...)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		actions := make([]audit.Action, len(ids))
		for i, id := range ids {
			actions[i] = c.action("discard", id, deadletter.Waiting, deadletter.Discarded)
		}
		n = len(ids)
		return audit.Record(ctx, tx, actions...)
	})
	if err != nil {
		return 0, fmt.Errorf("discard dead letters: %w", err)
	}
	return n, nil
}

// count is how many dead letters the filter picks, up to its limit.
func (s *Store) count(ctx context.Context, f Filter) (n int, err error) {
	condition, args := f.Where(1)
	sql := fmt.Sprintf(`select count(*) from public.dead_letter where %s`, condition)
	if f.Limit > 0 {
		sql = fmt.Sprintf(`select count(*) from (select from public.dead_letter where %s limit %d) l`, condition, f.Limit)
	}
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}
