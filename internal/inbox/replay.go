package inbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Replayer runs one consumer's dead letters. It is safe for concurrent use.
type Replayer struct {
	in      *Inbox
	handler message.HandlerFunc
}

// NewReplayer gets the handler under the inbox's middleware.
func NewReplayer(in *Inbox, handler message.HandlerFunc) *Replayer { return &Replayer{in, handler} }

// Options are a replay's operator and settings. By is required.
type Options struct {
	// With DryRun, Replay only decodes each dead letter and checks its contract.
	audit.Change
	// Force also replays forgotten events (too_old).
	Force bool
	// AcceptGap also replays events whose version is too high. Skipped versions become stale.
	AcceptGap bool
	// PerSecond bounds the dead letters per second. Default: no bound.
	PerSecond float64
	// OnResult is called after each dead letter.
	OnResult func(Result)
}

// Result is what became of one dead letter.
type Result struct {
	ID int64
	// Outcome is applied, duplicate, stale or ignored, which settle the dead letter; failed, refused or would_replay.
	Outcome string
	Code    string // of a failure or refusal
	Error   string

	class failure.Class // of a failure
}

// Further outcomes of a [Result].
const (
	Refused     = "refused" // not tried
	WouldReplay = "would_replay"
)

// Further codes of refusals.
const (
	CodeBehind    = "behind_waiting"
	CodeIDChanged = "id_changed" // an edit may only change the content
)

type refusal struct{ codedError }

func refuse(code string, err error) error { return &refusal{codedError{code, err}} }

// Replay runs the selected waiting dead letters, key by key in version order. One transaction handles the event,
// settles the dead letter and writes the audit row. A key stops at its first failure or refusal, others continue. A
// transient error ends the replay; call it again.
func (r *Replayer) Replay(ctx context.Context, f deadletter.Filter, o Options) error {
	if err := r.checkRequest(f, o); err != nil {
		return err
	}
	f.Consumer, f.State = r.in.cfg.Consumer, deadletter.Waiting
	last := deadletter.Letter{Consumer: f.Consumer, Version: -1}
	for n := 0; f.Limit == 0 || n < f.Limit; {
		l, err := deadletter.Next(ctx, r.in.cfg.Pool, last, f)
		if errors.Is(err, deadletter.ErrNotWaiting) {
			return nil
		}
		if err == nil && o.PerSecond > 0 && !o.DryRun {
			err = failure.Sleep(ctx, time.Duration(float64(time.Second)/o.PerSecond))
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		result, err := r.replayOne(ctx, &replayed{l, o})
		if errors.Is(err, deadletter.ErrNotWaiting) { // if it was edited, it is the next one again
			continue
		}
		if err != nil {
			return err
		}
		last = l
		if result.Code != "" && l.Holds {
			last.Version, last.ID = math.MaxInt64, math.MaxInt64
		}
		n++
		if o.OnResult != nil {
			o.OnResult(result)
		}
	}
	return nil
}

func (r *Replayer) checkRequest(f deadletter.Filter, o Options) error {
	switch {
	case o.By == "":
		return &deadletter.Error{Code: deadletter.CodeMissingOperator, Detail: "say who replays"}
	case f.Consumer != "" && f.Consumer != r.in.cfg.Consumer:
		return &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "the filter names another consumer"}
	case f.State != "" && f.State != deadletter.Waiting:
		return &deadletter.Error{Code: deadletter.CodeNotWaiting, Detail: "only waiting dead letters can be replayed"}
	case f.Limit < 0:
		return &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "a limit is not negative"}
	}
	return nil
}

// replayed is a dead letter that is tried again.
type replayed struct {
	deadletter.Letter
	Options
}

func (r *Replayer) replayOne(ctx context.Context, l *replayed) (Result, error) {
	alone.RLock()
	defer alone.RUnlock()
	result, err := r.try(ctx, l)
	if err == nil && result.Code != "" && !l.DryRun {
		l.Attempts++
		err = r.recordFailure(ctx, l, result)
	}
	return result, err
}

// try runs the dead letter as a transaction of one item. An error means that nothing is decided: it is transient, or
// [deadletter.ErrNotWaiting].
func (r *Replayer) try(ctx context.Context, l *replayed) (Result, error) {
	it, err := r.newItem(ctx, l)
	if err == nil && l.DryRun {
		return Result{ID: l.ID, Outcome: WouldReplay}, nil
	}
	if err == nil {
		err = r.in.apply(ctx, []*item{it})
	}
	if err == nil {
		r.in.metrics.replays.WithLabelValues(string(it.outcome)).Inc()
		r.in.log.InfoContext(ctx, "dead letter replayed", "id", l.ID, "event_id", it.event.ID, "correlation_id",
			it.event.CorrelationID(), "outcome", it.outcome, "by", l.By)
		r.in.cfg.Host.Handled(it.event, it.outcome)
		return Result{ID: l.ID, Outcome: string(it.outcome)}, nil
	}
	class := classify(err)
	if errors.Is(err, deadletter.ErrNotWaiting) || ctx.Err() != nil || class == failure.Transient {
		return Result{ID: l.ID}, fmt.Errorf("replay dead letter %d: %w", l.ID, err)
	}
	outcome := string(Failed)
	if _, is := errors.AsType[*refusal](err); is {
		outcome = Refused
	}
	return Result{l.ID, outcome, codeOf(err), failure.Brief(err.Error()), class}, nil
}

func (r *Replayer) newItem(ctx context.Context, l *replayed) (*item, error) {
	headers, payload := l.Current()
	msg := event.RecordMessage(l.Key, headers, payload)
	if subject := msg.Metadata[event.HeaderSubject]; len(l.Key) == 0 && l.IsEdited() && subject != "" {
		msg.Metadata[event.KeyMetadata] = subject
	}
	msg.SetContext(event.WithOrigin(ctx, event.Origin{
		Group: l.Group, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Time: l.RecordTime, Key: l.Key,
		Headers: headers,
	}))
	it := r.in.newItem(msg, r.handler)
	it.replay = l
	switch {
	case it.givenUpFor != nil:
		return it, refuse(codeOf(it.givenUpFor), it.givenUpFor)
	case l.Code == CodeTooOld && !l.Force:
		return it, refuse(CodeTooOld, ErrExpired)
	case l.Remembered && it.event.ID != l.EventID:
		return it, refuse(CodeIDChanged, errors.New("the edited record has another event id"))
	}
	return it, nil
}

// The place of an event without a version is where it came.
const selectEarlier = `
select coalesce(min(id), 0), coalesce(max(version), 0) from public.dead_letter
where consumer = $1 and key_start = $2 and state = 'waiting' and holds
    and case when version = 0 or $3 = 0 then id < $4 else (version, id) < ($3, $4) end`

// lockDeadLetter locks the key, then the dead letter. A strict consumer refuses it while an earlier one of the key
// waits.
func (t *transaction) lockDeadLetter(ctx context.Context) error {
	it := t.items[0]
	if it.replay == nil {
		return nil
	}
	l, err := deadletter.Lock(ctx, t.tx, it.replay.ID)
	if err != nil {
		return err
	}
	if !l.EditedAt.Equal(it.replay.EditedAt) {
		return deadletter.ErrNotWaiting
	}
	if t.in.cfg.Order != Strict {
		return nil
	}
	var earlier, version int64
	key := deadletter.KeyStart([]byte(it.event.Key))
	if err := t.tx.QueryRow(ctx, selectEarlier, l.Consumer, key, l.Version, l.ID).Scan(&earlier, &version); err != nil {
		return fmt.Errorf("look for earlier dead letters: %w", err)
	}
	switch {
	case version > 0 && it.event.Version == 0:
		return errNoVersion
	case earlier > 0:
		return refuse(CodeBehind, fmt.Errorf("dead letter %d of its key comes first", earlier))
	}
	return nil
}

const updateSettled = `
update public.dead_letter set state = 'replayed', outcome = $2, settled_at = clock_timestamp() where id = $1`

func (t *transaction) settleDeadLetter(ctx context.Context) error {
	it := t.items[0]
	if it.replay == nil {
		return nil
	}
	t.tx.queue.Queue(updateSettled, it.replay.ID, string(it.outcome))
	if err := deadletter.ReleaseKeys(ctx, t.tx, false, it.replay.Letter); err != nil {
		return err
	}
	return audit.Record(ctx, t.tx, it.replay.action(deadletter.Replayed, string(it.outcome), ""))
}

func (l *replayed) action(after deadletter.State, outcome, code string) audit.Action {
	a := deadletter.Action(l.Change, "replay", l.ID, deadletter.Waiting, after)
	a.Detail["outcome"] = outcome
	if code != "" {
		a.Detail["code"] = code
	}
	if l.Force {
		a.Detail["forced"] = "true"
	}
	if l.AcceptGap {
		a.Detail["accepted_gap"] = "true"
	}
	return a
}

const updateFailed = `
update public.dead_letter
set attempts = $5, replays = replays + 1, class = $2, code = $3, error = $4, failed_at = clock_timestamp()
where id = $1 and state = 'waiting'`

// A refusal only leaves an audit row, except of a parked event that can never be handled: it is given up.
func (r *Replayer) recordFailure(ctx context.Context, l *replayed, result Result) error {
	r.in.metrics.replays.WithLabelValues(result.Outcome).Inc()
	r.in.log.WarnContext(ctx, "replay failed", "id", l.ID, "event_id", l.EventID, "correlation_id",
		l.CorrelationID(), "outcome", result.Outcome, "code", result.Code, "error", result.Error)
	ctx, cancel := context.WithTimeout(ctx, r.in.cfg.HandlerTimeout)
	defer cancel()
	mayComeLater := result.Code == CodeBehind || result.Code == CodeGap || result.Code == CodeTooOld
	return pgx.BeginFunc(ctx, r.in.cfg.Pool, func(tx pgx.Tx) error {
		if result.Outcome == string(Failed) || l.Parked() && !mayComeLater {
			if err := r.storeFailure(ctx, tx, l.Letter, result); err != nil {
				return err
			}
		}
		return audit.Record(ctx, tx, l.action(deadletter.Waiting, result.Outcome, result.Code))
	})
}

func (r *Replayer) storeFailure(ctx context.Context, tx pgx.Tx, l deadletter.Letter, result Result) error {
	tag, err := tx.Exec(ctx, updateFailed, l.ID, string(result.class), result.Code, failure.Text(result.Error),
		l.Attempts)
	switch {
	case err != nil:
		return fmt.Errorf("record failed replay: %w", err)
	case tag.RowsAffected() == 0: // another replay or an operator has settled it
		return deadletter.ErrNotWaiting
	case !l.Parked():
		return nil
	}
	l.Class, l.Code, l.Error = string(result.class), result.Code, result.Error
	return r.in.cfg.Host.CopyDeadLetter(ctx, tx, l)
}
