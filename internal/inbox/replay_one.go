package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/deadletter"
	"example.com/twinbox/internal/failure"
)

// What waits behind a letter of the key at work is taken up with it: nobody would come back for it.
const nextLetters = `
select * from public.dead_letter
where consumer = $1 and state = 'waiting' and (key_start, version, id) > ($2, $3, $4)
    and (%s or key = $5 and class = 'parked')
order by key_start, version, id limit %d`

// nextOfKey is nextLetters for one letter and its key, at the cost of that key.
const nextOfKey = `
select ` + deadletter.Columns + ` from public.dead_letter
where consumer = $1 and state = 'waiting' and key_start = $2 and (version, id) > ($3, $4)
    and (id = $6 or key = $5 and class = 'parked')
order by version, id limit 1`

func (r *replay) peek(ctx context.Context, q audit.Querier, limit int) ([]deadletter.Letter, error) {
	sql, args := nextOfKey, []any{r.in.cfg.Consumer, r.at.key, r.at.version, r.at.id, r.flows}
	if r.only != 0 {
		args = append(args, r.only)
	} else {
		args = append(args, r.args...)
		sql = deadletter.Page(fmt.Sprintf(nextLetters, r.where, limit), "key_start, version, id")
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("find dead letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, deadletter.Scan)
	if err != nil {
		return nil, fmt.Errorf("find dead letters: %w", err)
	}
	return letters, nil
}

// insist repeats the letter's transaction while the surroundings fail, a bounded number of times.
func (r *replay) insist(ctx context.Context, l deadletter.Letter, done *Replayed) error {
	retry := newRetry(r.in.cfg)
	r.unsure = nil
	for attempt := 1; ; attempt++ {
		err := r.enter(ctx, l.ID, done)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("replay dead letter %d: %w", l.ID, context.Cause(ctx))
		}
		whose, known := errors.AsType[*itemError](err)
		_, tooLate := errors.AsType[*lateError](err)
		class := failure.Classify(err)
		if class != failure.Transient && (tooLate || known && whose.item != noItem || class == failure.Permanent) {
			return r.fail(ctx, l.ID, err, done)
		}
		if attempt == r.in.cfg.MaxAttempts {
			return fmt.Errorf("replay dead letter %d: %w", l.ID, err)
		}
		if err := (Standalone{}).Pause(ctx, nil, retry.policy.NextBackOff()); err != nil {
			return err
		}
	}
}

// enter begins an attempt beside others of the process, but not beside one at a suspect: if it ended the process, the
// suspect would be blamed. A letter that may have ended one itself runs while there is nothing else.
func (r *replay) enter(ctx context.Context, id int64, done *Replayed) error {
	weight, patient := int64(1), ctx
	if r.alone {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, aloneLimit)
		defer cancel()
		weight = everything
	}
	if err := underWay.Acquire(patient, weight); err != nil {
		return failure.AsTransient(errNotAlone)
	}
	defer underWay.Release(weight)
	return r.attempt(ctx, id, done)
}

// refusal is why a letter is not tried.
type refusal struct {
	code string
	err  error
}

func (e *refusal) Error() string { return e.err.Error() }

// errGone says that the letter is settled by now.
var errGone = errors.New("the letter is settled")

// attempt is the letter's transaction.
func (r *replay) attempt(parent context.Context, id int64, done *Replayed) error {
	deadline := time.Now().Add(r.in.cfg.HandlerTimeout)
	ctx, cancel := context.WithDeadline(parent, deadline)
	defer cancel()
	var event cloudevent.Event
	sent := false
	err := r.in.transact(ctx, func(w *work) error {
		l, it, err := r.begin(ctx, w, id)
		if err != nil {
			return err
		}
		event = it.event
		if it.outcome == Applied {
			w.item = 0
			if err := r.in.call(ctx, w, it); err != nil && w.err == nil {
				return &itemError{0, err}
			}
			w.item = noItem
		}
		r.in.crash("replay_handled")
		done.Outcome = string(it.outcome)
		err = r.settle(ctx, w, l, it.outcome)
		sent = err == nil
		return err
	})
	if errors.Is(err, errGone) {
		return r.gone(parent, id, done)
	}
	if err != nil && sent {
		r.unsure = &event
	}
	if err != nil && parent.Err() == nil && !time.Now().Before(deadline) {
		err = late(err, r.in.cfg.HandlerTimeout)
	}
	return r.concluded(parent, err, event, done)
}

const selectSettled = `select outcome from public.dead_letter where id = $1 and state = 'replayed'`

// gone concludes with a letter that does not wait any more. An attempt whose commit was not answered has settled it:
// then it counts, and what parked behind it is taken up.
func (r *replay) gone(ctx context.Context, id int64, done *Replayed) error {
	if r.unsure == nil {
		done.Outcome = ""
		return nil
	}
	return r.concluded(ctx, r.settled(ctx, id, done), *r.unsure, done)
}

func (r *replay) settled(ctx context.Context, id int64, done *Replayed) error {
	err := r.in.cfg.Pool.QueryRow(ctx, selectSettled, id).Scan(&done.Outcome)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errGone // it was not committed, and then discarded
	case err != nil:
		return fmt.Errorf("read settled dead letter: %w", err)
	}
	return nil
}

// begin locks the letter and takes its event's id and place in the order of its key. What it may wait for, another
// transaction or the server, is not the letter's fault.
func (r *replay) begin(ctx context.Context, w *work, id int64) (l deadletter.Letter, it *item, err error) {
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) {
			err = failure.AsTransient(err)
			w.err = err
		}
	}()
	if l, err = lockLetter(ctx, w, id); err != nil {
		return l, nil, err
	}
	r.in.crash("replay_claimed")
	if it, err = r.admit(ctx, w, l); err != nil {
		return l, it, err
	}
	if it.outcome, err = r.in.claim(ctx, w, it, l, r.options.Force); err != nil {
		return l, it, err
	}
	return l, it, w.ready(ctx)
}

// concluded sorts out what is no failure.
func (r *replay) concluded(ctx context.Context, err error, event cloudevent.Event, done *Replayed) error {
	refused, isRefused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		r.in.crash("replay_committed")
		r.in.log.InfoContext(ctx, "dead letter replayed", "id", done.ID, "event_id", done.EventID,
			"correlation_id", event.CorrelationID(), "outcome", done.Outcome,
			"by", r.options.By)
		r.in.cfg.Host.Handled(event, Outcome(done.Outcome))
		return nil
	case errors.Is(err, errGone):
		done.Outcome = ""
		return nil
	case isRefused:
		done.Outcome, done.Code, done.Error = ReplayRefused, refused.code, refused.Error()
		return r.recordRefusal(ctx, done)
	}
	done.Outcome = string(Failed)
	return err
}

// recordRefusal leaves the audit row of a letter that was not tried: who asks why it still waits finds the answer
// there.
func (r *replay) recordRefusal(ctx context.Context, done *Replayed) error {
	return pgx.BeginFunc(ctx, r.in.cfg.Pool, func(tx pgx.Tx) error {
		return audit.Record(ctx, tx, r.action(done.ID, map[string]string{"outcome": ReplayRefused, "code": done.Code}))
	})
}

// Two replays, a replay and an edit, a replay and a consumer that parks behind the letter: they take turns here.
const lockWaiting = `
select ` + deadletter.Columns + ` from public.dead_letter where id = $1 and state = 'waiting' for update`

func lockLetter(ctx context.Context, tx pgx.Tx, id int64) (deadletter.Letter, error) {
	rows, err := tx.Query(ctx, lockWaiting, id)
	if err != nil {
		return deadletter.Letter{}, fmt.Errorf("lock dead letter: %w", err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, deadletter.Scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, errGone
	}
	return l, err
}

const renameLetter = `
update public.dead_letter set code = $2, error = $3 where id = $1 and state = 'waiting' and class = 'parked'`

// rename says of a parked letter what keeps it now: the one that it was parked behind is gone, and a version before it
// is missing.
func (r *replay) rename(ctx context.Context, l deadletter.Letter, done Replayed) error {
	gap := done.Outcome == ReplayRefused && (done.Code == CodeGap || done.Code == CodeJump)
	if !gap || !l.Parked() || l.Code == done.Code || r.options.DryRun {
		return nil
	}
	if _, err := r.in.cfg.Pool.Exec(ctx, renameLetter, l.ID, done.Code, done.Error); err != nil {
		return fmt.Errorf("note gap of dead letter: %w", err)
	}
	return nil
}

const settleLetter = `
update public.dead_letter set state = 'replayed', outcome = $2, settled_at = clock_timestamp() where id = $1`

func (r *replay) settle(ctx context.Context, w *work, l deadletter.Letter, outcome Outcome) error {
	if err := Queue(ctx, w, settleLetter, l.ID, string(outcome)); err != nil {
		return fmt.Errorf("settle dead letter: %w", err)
	}
	action := r.action(l.ID, map[string]string{"outcome": string(outcome)})
	action.After = string(deadletter.Replayed)
	if err := audit.Record(ctx, w, action); err != nil {
		return err
	}
	r.in.crash("replay_committing")
	return nil
}

func (r *replay) action(id int64, detail map[string]string) audit.Action {
	if r.options.Force {
		detail["forced"] = "true"
	}
	if r.options.AcceptGap {
		detail["accepted_gap"] = "true"
	}
	return audit.Action{
		By: r.options.By, Verb: "replay", Reason: r.options.Reason, Kind: deadletter.Kind,
		Subject: strconv.FormatInt(id, 10), Before: string(deadletter.Waiting), After: string(deadletter.Waiting),
		Detail: detail,
	}
}

const failLetter = `
update public.dead_letter
set attempts = attempts + 1, replays = replays + 1, class = $2, code = $3, error = $4, failed_at = clock_timestamp(),
    holds = holds and not $5
where id = $1`

// fail records an attempt that its handler or its data did not let succeed. What had only been parked is given up now,
// so this is where it gets its copy.
func (r *replay) fail(ctx context.Context, id int64, cause error, done *Replayed) error {
	failed := &letter{err: cause}
	err := r.in.transact(ctx, func(w *work) error {
		l, err := lockLetter(ctx, w, id)
		if err != nil {
			return err
		}
		parked := l.Parked()
		l.Class, l.Code, l.FailedAt = failed.class(), failed.code(), time.Now()
		l.Error = deadletter.Text(failure.Brief(cause.Error()))
		l.Attempts, l.Replays = l.Attempts+1, l.Replays+1
		if _, err := w.Exec(ctx, failLetter, id, l.Class, l.Code, l.Error, r.in.passes()); err != nil {
			return fmt.Errorf("record failed replay: %w", err)
		}
		done.Outcome, done.Code, done.Error = string(Failed), l.Code, l.Error
		if parked {
			if err := r.in.cfg.Host.CopyDeadLetter(ctx, w, l); err != nil {
				return err
			}
		}
		return audit.Record(ctx, w, r.action(id, map[string]string{"outcome": string(Failed), "code": l.Code}))
	})
	if errors.Is(err, errGone) {
		return r.gone(ctx, id, done)
	}
	if err == nil {
		r.in.log.WarnContext(ctx, "replay failed", "id", id, "event_id", done.EventID, "code", done.Code, "error", cause)
	}
	return err
}
