package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// errGone says that there is no such dead letter waiting: it is settled by now, or nothing is left to replay.
var errGone = errors.New("the dead letter is settled")

func selectLetter(ctx context.Context, q audit.Querier, sql string, args ...any) (deadletter.Letter, error) {
	rows, _ := q.Query(ctx, sql, args...)
	l, err := pgx.CollectOneRow(rows, deadletter.Scan)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l, errGone
	case err != nil:
		return l, fmt.Errorf("find dead letter: %w", err)
	}
	return l, nil
}

// retryLetter repeats the dead letter's transaction while the surroundings fail, a bounded number of times.
func (r *run) retryLetter(ctx context.Context, l deadletter.Letter, done *Result) error {
	pauses := r.inbox.Backoff()
	var event cloudevent.Event
	unanswered := false // the commit of an attempt before
	for attempt := 1; ; attempt++ {
		sent, err := r.retakeLetter(ctx, l.ID, done, &event)
		if errors.Is(err, errGone) && unanswered {
			err = r.readSettled(ctx, l.ID, done)
		}
		unanswered = unanswered || sent
		refused, isRefused := errors.AsType[*inbox.Refusal](err)
		if isRefused {
			done.refuse(refused)
			if err = r.recordRefusal(ctx, l, done); err == nil {
				return nil
			}
		}
		failed, isFailed := errors.AsType[*inbox.HandlerError](err)
		switch {
		case err == nil:
			r.crash("replay_committed")
			r.inbox.Log.InfoContext(ctx, "dead letter replayed", "id", l.ID, "event_id", l.EventID,
				"correlation_id", event.CorrelationID(), "outcome", done.Outcome, "by", r.by)
			r.inbox.Host.Handled(event, inbox.Outcome(done.Outcome))
			return nil
		case errors.Is(err, errGone):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("replay dead letter %d: %w", l.ID, context.Cause(ctx))
		case isFailed:
			if err = r.recordFailure(ctx, l.ID, failed, done); !unanswered || !errors.Is(err, errGone) {
				return err
			}
			// It is settled: by the commit whose answer came too late, which the next attempt finds out.
		case attempt >= r.inbox.MaxAttempts:
			return fmt.Errorf("replay dead letter %d: %w", l.ID, err)
		}
		if err := (inbox.Standalone{}).Pause(ctx, err, pauses.Next()); err != nil {
			return err
		}
	}
}

// Two replays, a replay and an edit, a replay and a consumer that parks behind the dead letter: they take turns here.
const lockWaiting = `
select ` + deadletter.Columns + ` from public.dead_letter where id = $1 and state = 'waiting' for update`

const updateSettled = `
update public.dead_letter set state = 'replayed', outcome = $2, settled_at = clock_timestamp() where id = $1`

// retakeLetter is the dead letter's transaction. It says whether the commit was sent: then an error may be that of its
// answer alone.
func (r *run) retakeLetter(
	ctx context.Context, id int64, done *Result, event *cloudevent.Event,
) (sent bool, err error) {
	_, err = r.cfg.Inbox.Retake(ctx, inbox.Retake{
		Alone: r.alone,
		Lock: func(ctx context.Context, tx pgx.Tx) (record *inbox.Record, err error) {
			letter, err := selectLetter(ctx, tx, lockWaiting, id)
			if err != nil {
				return nil, err
			}
			r.crash("replay_claimed")
			if record, err = r.admit(ctx, tx, letter); err == nil {
				*event = record.Event()
			}
			return record, err
		},
		Settle: func(ctx context.Context, tx pgx.Tx, outcome inbox.Outcome) error {
			done.Outcome = string(outcome)
			if err := inbox.Queue(ctx, tx, updateSettled, id, done.Outcome); err != nil {
				return fmt.Errorf("settle dead letter: %w", err)
			}
			action := r.auditAction(id, map[string]string{"outcome": done.Outcome})
			action.After = string(deadletter.Replayed)
			if err := audit.Record(ctx, tx, action); err != nil {
				return err
			}
			r.crash("replay_committing")
			sent = true
			return nil
		},
	})
	return sent, err
}

const selectSettled = `select outcome from public.dead_letter where id = $1 and state = 'replayed'`

// readSettled reads what became of a dead letter that does not wait any more, after an attempt whose commit was not
// answered: if that has settled it, it counts, and what parked behind it is taken up.
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

const updateReason = `
update public.dead_letter set code = $2, error = $3 where id = $1 and state = 'waiting' and class = 'parked'`

// recordRefusal leaves the audit row of a dead letter that was not tried: an operator finds there why it still waits.
// Of a parked one it says what keeps it now: the one that it was parked behind is gone, and a version before it is
// missing.
func (r *run) recordRefusal(ctx context.Context, l deadletter.Letter, done *Result) error {
	return pgx.BeginFunc(ctx, r.inbox.Pool, func(tx pgx.Tx) error {
		if gap := done.Code == inbox.CodeGap || done.Code == inbox.CodeJump; gap && l.Parked() && l.Code != done.Code {
			if _, err := tx.Exec(ctx, updateReason, l.ID, done.Code, done.Error); err != nil {
				return fmt.Errorf("note gap of dead letter: %w", err)
			}
		}
		return audit.Record(ctx, tx, r.auditAction(l.ID, map[string]string{"outcome": Refused, "code": done.Code}))
	})
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
		l, err := selectLetter(ctx, tx, lockWaiting, id)
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
	if err == nil {
		r.inbox.Log.WarnContext(ctx, "replay failed", "id", id, "event_id", done.EventID,
			"correlation_id", correlation, "code", done.Code, "error", failed.Err)
	}
	return err
}

// readRecord makes a record of the dead letter again: what came, or what an operator put in its place, and where it
// lay. An edited record that came without a key takes the one it names.
func (r *run) readRecord(ctx context.Context, l deadletter.Letter) (*inbox.Record, error) {
	if l.Code == string(cloudevent.CodeUnreadable) && l.Edited == nil {
		return nil, &inbox.Refusal{
			Code: l.Code, Err: errors.New("a damaged batch is no record: edit in what it held, headers and payload"),
		}
	}
	headers, payload := l.Current()
	msg := cloudevent.RecordMessage(l.Key, headers, payload)
	if len(l.Key) == 0 && l.Edited != nil && msg.Metadata[cloudevent.HeaderSubject] != "" {
		msg.Metadata[cloudevent.KeyMetadata] = msg.Metadata[cloudevent.HeaderSubject]
	}
	msg.SetContext(cloudevent.WithOrigin(ctx, cloudevent.Origin{
		Group: l.Group, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Time: l.RecordedAt(),
		Key: l.Key, Headers: headers, LastOffset: l.Offset,
	}))
	record, err := r.cfg.Inbox.Read(msg, r.cfg.Handler, inbox.Filed{
		Payload: l.Payload, Remembered: l.Remembered, AcceptGap: r.acceptGap, Force: r.force,
	})
	switch {
	case err != nil:
		return record, err
	case l.Remembered && record.Event().ID != l.EventID:
		return record, &inbox.Refusal{Code: CodeIDChanged, Err: errors.New("the edited record carries another event id")}
	case l.Replays >= r.cfg.MaxReplays && !r.force:
		return record, &inbox.Refusal{Code: CodeReplayLimit, Err: fmt.Errorf("%d replays failed", l.Replays)}
	}
	return record, nil
}

// Letters that hold nothing keep no order among themselves, but they do behind one that holds their key.
const selectEarlier = `
select min(id) from public.dead_letter
where consumer = $1 and key_start = $2 and state = 'waiting' and holds and (version, id) < ($3, $4)`

// admit refuses what must not run now. An earlier dead letter may have been parked while this one was waited for: the
// statement comes after the lock, so that it sees what the lock's last holder has committed.
func (r *run) admit(ctx context.Context, tx pgx.Tx, l deadletter.Letter) (*inbox.Record, error) {
	record, err := r.readRecord(ctx, l)
	if err != nil {
		return nil, err
	}
	behind := refuseBehind(ctx, tx, []byte(record.Event().Key), l)
	if _, is := errors.AsType[*inbox.Refusal](behind); !is {
		return record, behind
	}
	next, err := r.next(ctx, tx)
	switch {
	case errors.Is(err, errGone):
		return nil, behind
	case err == nil && next.ID != l.ID:
		return nil, errGone // it was parked meanwhile and is picked: it comes first
	}
	return nil, errors.Join(err, behind)
}

// refuseBehind refuses a dead letter while an earlier one holds the key.
func refuseBehind(ctx context.Context, q audit.Querier, key []byte, l deadletter.Letter) error {
	rows, _ := q.Query(ctx, selectEarlier, l.Consumer, key, l.Version, l.ID)
	earlier, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[*int64])
	switch {
	case err != nil:
		return fmt.Errorf("look for earlier dead letters: %w", err)
	case earlier == nil:
		return nil
	}
	return &inbox.Refusal{Code: CodeBehind, Err: fmt.Errorf("dead letter %d of its key comes first", *earlier)}
}
