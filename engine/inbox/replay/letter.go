package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox"
)

func selectLetters(ctx context.Context, q audit.Querier, sql string, args ...any) ([]deadletter.Letter, error) {
	rows, _ := q.Query(ctx, sql, args...)
	letters, err := pgx.CollectRows(rows, deadletter.Scan)
	if err != nil {
		return nil, fmt.Errorf("find dead letters: %w", err)
	}
	return letters, nil
}

// retryLetter repeats the dead letter's transaction while the surroundings fail, a bounded number of times.
func (r *run) retryLetter(ctx context.Context, l deadletter.Letter, done *Result) error {
	retry := r.inbox.Backoff()
	r.unanswered = nil
	for attempt := 1; ; attempt++ {
		err := r.retakeLetter(ctx, l.ID, done)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("replay dead letter %d: %w", l.ID, context.Cause(ctx))
		}
		if failed, is := errors.AsType[*inbox.HandlerError](err); is {
			return r.recordFailure(ctx, l.ID, failed, done)
		}
		if attempt == r.inbox.MaxAttempts {
			return fmt.Errorf("replay dead letter %d: %w", l.ID, err)
		}
		if err := (inbox.Standalone{}).Pause(ctx, err, retry.Next()); err != nil {
			return err
		}
	}
}

// errGone says that the dead letter is settled by now.
var errGone = errors.New("the dead letter is settled")

// retakeLetter is the dead letter's transaction.
func (r *run) retakeLetter(ctx context.Context, id int64, done *Result) error {
	var letter deadletter.Letter
	var event cloudevent.Event
	sent := false
	_, err := r.cfg.Inbox.Retake(ctx, inbox.Retake{
		Alone: r.alone,
		Lock: func(ctx context.Context, tx pgx.Tx) (record *inbox.Record, err error) {
			if letter, err = lockLetter(ctx, tx, id); err != nil {
				return nil, err
			}
			r.crash("replay_claimed")
			if record, err = r.admit(ctx, tx, letter); err == nil {
				event = record.Event()
			}
			return record, err
		},
		Settle: func(ctx context.Context, tx pgx.Tx, outcome inbox.Outcome) error {
			done.Outcome = string(outcome)
			err := r.settleLetter(ctx, tx, letter, outcome)
			sent = err == nil
			return err
		},
	})
	if errors.Is(err, errGone) {
		return r.concludeGone(ctx, id, done)
	}
	if err != nil && sent {
		r.unanswered = &event
	}
	return r.conclude(ctx, err, event, done)
}

const selectSettled = `select outcome from public.dead_letter where id = $1 and state = 'replayed'`

// concludeGone concludes with a dead letter that does not wait any more. An attempt whose commit was not answered has
// settled it: then it counts, and what parked behind it is taken up.
func (r *run) concludeGone(ctx context.Context, id int64, done *Result) error {
	if r.unanswered == nil {
		done.Outcome = ""
		return nil
	}
	return r.conclude(ctx, r.readSettled(ctx, id, done), *r.unanswered, done)
}

func (r *run) readSettled(ctx context.Context, id int64, done *Result) error {
	err := r.inbox.Pool.QueryRow(ctx, selectSettled, id).Scan(&done.Outcome)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errGone // it was not committed, and then discarded
	case err != nil:
		return fmt.Errorf("read settled dead letter: %w", err)
	}
	return nil
}

// conclude sorts out what is no failure.
func (r *run) conclude(ctx context.Context, err error, event cloudevent.Event, done *Result) error {
	refused, isRefused := errors.AsType[*inbox.Refusal](err)
	switch {
	case err == nil:
		r.crash("replay_committed")
		r.inbox.Log.InfoContext(ctx, "dead letter replayed", "id", done.ID, "event_id", done.EventID,
			"correlation_id", event.CorrelationID(), "outcome", done.Outcome,
			"by", r.by)
		r.inbox.Host.Handled(event, inbox.Outcome(done.Outcome))
		return nil
	case errors.Is(err, errGone):
		done.Outcome = ""
		return nil
	case isRefused:
		done.Outcome, done.Code, done.Error = Refused, refused.Code, refused.Error()
		return r.recordRefusal(ctx, done)
	}
	done.Outcome = string(inbox.Failed)
	return err
}

// recordRefusal leaves the audit row of a dead letter that was not tried: an operator finds there why it still waits.
func (r *run) recordRefusal(ctx context.Context, done *Result) error {
	return pgx.BeginFunc(ctx, r.inbox.Pool, func(tx pgx.Tx) error {
		return audit.Record(ctx, tx, r.auditAction(done.ID, map[string]string{"outcome": Refused, "code": done.Code}))
	})
}

// Two replays, a replay and an edit, a replay and a consumer that parks behind the dead letter: they take turns here.
const lockWaiting = `
select ` + deadletter.Columns + ` from public.dead_letter where id = $1 and state = 'waiting' for update`

func lockLetter(ctx context.Context, tx pgx.Tx, id int64) (deadletter.Letter, error) {
	rows, _ := tx.Query(ctx, lockWaiting, id)
	l, err := pgx.CollectExactlyOneRow(rows, deadletter.Scan)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l, errGone
	case err != nil:
		return l, fmt.Errorf("lock dead letter: %w", err)
	}
	return l, nil
}

const updateReason = `
update public.dead_letter set code = $2, error = $3 where id = $1 and state = 'waiting' and class = 'parked'`

// updateReason says of a parked dead letter what keeps it now: the one that it was parked behind is gone, and a version
// before it is missing.
func (r *run) updateReason(ctx context.Context, l deadletter.Letter, done Result) error {
	gap := done.Outcome == Refused && (done.Code == inbox.CodeGap || done.Code == inbox.CodeJump)
	if !gap || !l.Parked() || l.Code == done.Code {
		return nil
	}
	if _, err := r.inbox.Pool.Exec(ctx, updateReason, l.ID, done.Code, done.Error); err != nil {
		return fmt.Errorf("note gap of dead letter: %w", err)
	}
	return nil
}

const updateSettled = `
update public.dead_letter set state = 'replayed', outcome = $2, settled_at = clock_timestamp() where id = $1`

func (r *run) settleLetter(ctx context.Context, tx pgx.Tx, l deadletter.Letter, outcome inbox.Outcome) error {
	if err := inbox.Queue(ctx, tx, updateSettled, l.ID, string(outcome)); err != nil {
		return fmt.Errorf("settle dead letter: %w", err)
	}
	action := r.auditAction(l.ID, map[string]string{"outcome": string(outcome)})
	action.After = string(deadletter.Replayed)
	if err := audit.Record(ctx, tx, action); err != nil {
		return err
	}
	r.crash("replay_committing")
	return nil
}

func (r *run) auditAction(id int64, detail map[string]string) audit.Action {
	if r.force {
		detail["forced"] = "true"
	}
	if r.acceptGap {
		detail["accepted_gap"] = "true"
	}
	return audit.Action{
		By: r.by, Verb: "replay", Reason: r.reason, Kind: deadletter.Kind,
		Subject: strconv.FormatInt(id, 10), Before: string(deadletter.Waiting), After: string(deadletter.Waiting),
		Detail: detail,
	}
}

const updateFailed = `
update public.dead_letter
set attempts = attempts + 1, replays = replays + 1, class = $2, code = $3, error = $4, failed_at = clock_timestamp(),
    holds = holds and not $5
where id = $1`

// recordFailure records an attempt that its handler or its data did not let succeed. What had only been parked is given
// up now, so this is where it gets its copy.
func (r *run) recordFailure(ctx context.Context, id int64, failed *inbox.HandlerError, done *Result) error {
	correlation := ""
	err := pgx.BeginFunc(ctx, r.inbox.Pool, func(tx pgx.Tx) error {
		l, err := lockLetter(ctx, tx, id)
		if err != nil {
			return err
		}
		parked := l.Parked()
		correlation = l.CorrelationID()
		l.Class, l.Code, l.FailedAt = string(failure.Classify(failed)), failed.Code, time.Now()
		l.Error = deadletter.Text(failure.Brief(failed.Error()))
		l.Attempts, l.Replays = l.Attempts+1, l.Replays+1
		if _, err := tx.Exec(ctx, updateFailed, id, l.Class, l.Code, l.Error, r.passes()); err != nil {
			return fmt.Errorf("record failed replay: %w", err)
		}
		done.Outcome, done.Code, done.Error = string(inbox.Failed), l.Code, l.Error
		if parked {
			if err := r.inbox.Host.CopyDeadLetter(ctx, tx, l); err != nil {
				return err
			}
		}
		return audit.Record(ctx, tx, r.auditAction(id, map[string]string{"outcome": string(inbox.Failed), "code": l.Code}))
	})
	if errors.Is(err, errGone) {
		return r.concludeGone(ctx, id, done)
	}
	if err == nil {
		r.inbox.Log.WarnContext(ctx, "replay failed", "id", id, "event_id", done.EventID,
			"correlation_id", correlation, "code", done.Code, "error", failed.Err)
	}
	return err
}
