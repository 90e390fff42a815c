package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
)

// Edit replaces parts of a record. A nil field leaves its part unchanged.
type Edit struct {
	Set     []Header // replaces the headers of its name
	Payload []byte
	// EditedAt is that of the dead letter that the caller has read.
	EditedAt time.Time
}

const updateEdited = `
update public.dead_letter
set edited_headers = $2, edited_payload = $3, edited_by = $4, edited_at = clock_timestamp()
where id = $1`

// Edit replaces parts of a waiting dead letter's record for the next replay, which checks them. The original stays. A
// later edit adds to an earlier one; without its EditedAt the error is [CodeEditedSince].
func (s *Store) Edit(ctx context.Context, id int64, e Edit, c audit.Change) (l Letter, err error) {
	if len(e.Set) == 0 && e.Payload == nil {
		return l, &Error{CodeNothingToEdit, "neither headers nor payload are given"}
	}
	if slices.ContainsFunc(e.Set, func(h Header) bool { return h.Name == "" }) {
		return l, &Error{CodeInvalidHeaders, "a header has no name"}
	}
	err = c.Make(ctx, s.pool, func(tx pgx.Tx) (none audit.Action, err error) {
		l, err := get(ctx, tx, id, "for update")
		if err != nil {
			return none, err
		}
		if l.State != Waiting {
			return none, &Error{CodeNotWaiting, fmt.Sprintf("dead letter %d is %s", id, l.State)}
		}
		if l.IsEdited() && !l.EditedAt.Equal(e.EditedAt) {
			return none, &Error{CodeEditedSince, fmt.Sprintf("dead letter %d was edited by %s: look at it; to replace "+
				"that edit, give its time: --edited-at %s", id, l.EditedBy, l.EditedAt.Format(time.RFC3339Nano))}
		}
		headers, payload := l.Current()
		if e.Payload != nil {
			payload = e.Payload
		}
		for _, set := range e.Set {
			headers = slices.DeleteFunc(slices.Clone(headers), func(h Header) bool { return h.Name == set.Name })
			headers = append(headers, set)
		}
		if _, err := tx.Exec(ctx, updateEdited, id, headerList(headers), payload, c.By); err != nil {
			return none, fmt.Errorf("edit dead letter: %w", err)
		}
		return Action(c, "edit", id, l.State, l.State), err
	})
	if err != nil {
		return l, err
	}
	return get(ctx, s.pool, id, "")
}

// Action returns the action on a dead letter.
func Action(c audit.Change, verb string, id int64, before, after State) audit.Action {
	return c.Action(verb, Kind, strconv.FormatInt(id, 10), string(before), string(after))
}

// discardChunk bounds one transaction, because the keys' consumers wait for it.
const discardChunk = 500

const (
	pickLetters = `select id from public.dead_letter where %s order by id limit %d`

	discardLetters = `
with discarded as (
    update public.dead_letter set state = 'discarded', settled_at = clock_timestamp()
    where id = any($1) and state = 'waiting' returning *
)
select ` + briefColumns + ` from discarded order by version, id`
)

const countLetters = `select count(*) from (select from public.dead_letter where %s limit nullif(%d, 0)) l`

// Count returns the number of selected dead letters, up to the filter's limit.
func (s *Store) Count(ctx context.Context, f Filter) (n int64, err error) {
	condition, args := f.Where(1)
	err = s.pool.QueryRow(ctx, fmt.Sprintf(countLetters, condition, f.Limit), args...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}

// Discard settles waiting dead letters without handling them, and releases their keys. It works in chunks; after an
// error, another call continues. Without a condition the error is [CodeMissingFilter].
func (s *Store) Discard(ctx context.Context, f Filter, c audit.Change) (audit.Result, error) {
	result := audit.Result{DryRun: c.DryRun}
	if err := f.check(); err != nil {
		return result, err
	}
	if !f.Selective() {
		return result, &Error{CodeMissingFilter, "say which dead letters to discard"}
	}
	if f.State != "" && f.State != Waiting {
		return result, &Error{CodeNotWaiting, "only waiting dead letters can be discarded"}
	}
	f.State = Waiting
	matched, err := s.Count(ctx, f)
	if err != nil {
		return result, err
	}
	if c.DryRun {
		result.Count = matched
		return result, nil
	}
	condition, args := f.Where(1)
	for result.Count < matched {
		pick := fmt.Sprintf(pickLetters, condition, min(discardChunk, matched-result.Count))
		rows, _ := s.pool.Query(ctx, pick, args...)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return result, fmt.Errorf("pick dead letters: %w", err)
		}
		if len(ids) == 0 { // another operator settled the rest
			return result, nil
		}
		n, err := s.discard(ctx, ids, c)
		if err != nil {
			return result, err
		}
		result.Count += n
		c.ReportProgress(result.Count, matched)
	}
	return result, nil
}

func (s *Store) discard(ctx context.Context, ids []int64, c audit.Change) (int64, error) {
	var actions []audit.Action
	err := c.MakeMany(ctx, s.pool, func(tx pgx.Tx) ([]audit.Action, error) {
		if err := LockKeys(ctx, tx, ids...); err != nil {
			return nil, err
		}
		rows, _ := tx.Query(ctx, discardLetters, ids)
		discarded, err := pgx.CollectRows(rows, Scan)
		if err != nil {
			return nil, err
		}
		for _, l := range discarded {
			actions = append(actions, Action(c, "discard", l.ID, Waiting, Discarded))
		}
		return actions, ReleaseKeys(ctx, tx, true, discarded...)
	})
	if err != nil {
		return 0, fmt.Errorf("discard dead letters: %w", err)
	}
	return int64(len(actions)), nil
}
