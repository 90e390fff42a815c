package inbox

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/deadletter"
)

// Replay takes up the waiting dead letters of this consumer that the filter picks: through the inbox, under their own
// ids, key by key in the order of version and arrival. What parked behind a letter is taken up after it, picked or not,
// so that a key flows again. Each letter has one transaction: its row is locked, its id claimed, its version compared,
// the handler run, the letter settled and the audit row written. So whatever is killed, and however many replays and
// consumers run at once, each event has its effect at most once, and never over newer state.
//
// A key stops at its first failure or refusal, other keys go on. A failed letter waits as before with its new error.
// When the surroundings fail (the database is down), the replay ends with an error and counts it against no letter;
// call it again to go on. The report is right also when there is an error.
func (in *Inbox) Replay(ctx context.Context, f deadletter.Filter, o ReplayOptions) (ReplayReport, error) {
	r, err := in.newReplay(f, o)
	if err != nil {
		return ReplayReport{}, err
	}
	started := time.Now()
	for err == nil && !r.ended && !r.full() {
		err = r.page(ctx)
	}
	r.report.Took = time.Since(started)
	return r.report, err
}

// replay is one run.
type replay struct {
	in      *Inbox
	options ReplayOptions
	where   string
	args    []any
	at      position
	key     []byte            // that was looked at last
	flows   []byte            // the key, once a letter of it succeeded or is passed over; nil is equal to no key
	only    int64             // the one letter that is picked, of a replay of its key; else 0
	unsure  *cloudevent.Event // of the letter at work, when its commit was sent and not answered
	alone   bool              // the letter may have ended a process: nothing else runs beside it
	ended   bool
	report  ReplayReport
}

// position is a place in the order of a replay.
type position struct {
	key         []byte // as far as letters are ordered by it
	version, id int64
}

func (in *Inbox) newReplay(f deadletter.Filter, o ReplayOptions) (*replay, error) {
	switch {
	case o.By == "":
		return nil, &deadletter.Error{Code: deadletter.CodeMissingOperator, Detail: "say who replays"}
	case in.cfg.Handler == nil:
		return nil, &deadletter.Error{Code: CodeNoHandler, Detail: "the consumer was set up without a handler for replays"}
	case f.Consumer != "" && f.Consumer != in.cfg.Consumer:
		return nil, &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "the filter names another consumer"}
	case f.State != "" && f.State != deadletter.Waiting:
		return nil, &deadletter.Error{Code: deadletter.CodeNotWaiting, Detail: "only waiting letters can be replayed"}
	case o.Limit < 0 || f.Limit < 0:
		return nil, &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "a limit is not negative"}
	}
	if o.Limit == 0 {
		o.Limit = f.Limit
	}
	if o.OnProgress == nil {
		o.OnProgress = func(Replayed) {}
	}
	f.Consumer, f.State = in.cfg.Consumer, deadletter.Waiting
	if o.DryRun {
		o.Pace = nil
	}
	r := &replay{in: in, options: o}
	r.where, r.args = f.Where(6)
	r.at = position{key: []byte{}, version: -1, id: -1}
	return r, nil
}

// full says that as many letters were looked at as may be.
func (r *replay) full() bool { return r.options.Limit > 0 && r.report.Matched >= r.options.Limit }

const dryRunPage = 200

// page finds the next letter and takes it up. One at a time: what the consumer parks meanwhile behind the key at work
// is then found in its place. In a dry run nothing changes, so that a page can be read at once.
func (r *replay) page(ctx context.Context) error {
	limit := 1
	if r.options.DryRun {
		limit = dryRunPage
	}
	letters, err := r.peek(ctx, r.in.cfg.Pool, limit)
	if err != nil {
		return err
	}
	r.ended = len(letters) == 0 // a page of large letters is short
	for _, l := range letters {
		if r.full() {
			return nil
		}
		if err := r.take(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// take brings one letter to its outcome and moves on.
func (r *replay) take(ctx context.Context, l deadletter.Letter) error {
	ordered := deadletter.KeyStart(l.Key)
	if bytes.Equal(r.at.key, ordered) && r.at.id == math.MaxInt64 {
		return nil // read ahead in a dry run, of a key that has stopped
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	done, err := r.outcome(ctx, l)
	if err != nil {
		return err
	}
	if done.Outcome == "" { // somebody else settled it, or something came before it: look again
		return nil
	}
	if !bytes.Equal(r.key, l.Key) || r.report.Keys == 0 {
		r.key = l.Key
		r.report.Keys++
	}
	r.at = position{ordered, l.Version, l.ID}
	failed, refused := done.Outcome == string(Failed), done.Outcome == ReplayRefused
	passed := failed && l.Holds && r.in.passes()
	if (failed || refused) && l.Holds && !passed {
		r.at.version, r.at.id = math.MaxInt64, math.MaxInt64
	}
	if (passed || !failed && !refused) && !r.options.DryRun { // which counts what was picked
		r.flows = l.Key
	}
	if err := r.rename(ctx, l, done); err != nil {
		return err
	}
	r.report.count(done)
	if !r.options.DryRun {
		r.in.metrics.replays.WithLabelValues(done.Outcome).Inc()
	}
	r.options.OnProgress(done)
	return nil
}

// outcome tries the letter, or says what would be tried.
func (r *replay) outcome(ctx context.Context, l deadletter.Letter) (Replayed, error) {
	done := Replayed{ID: l.ID, EventID: l.EventID, Key: deadletter.Text(string(l.Key))}
	var err error
	switch {
	case r.options.DryRun:
		err = r.rehearse(ctx, l, &done)
	case r.only != 0:
		err = r.survive(ctx, l, &done)
	default:
		err = r.insist(ctx, l, &done)
	}
	return done, err
}

// wait keeps to the rate.
func (r *replay) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("replay: %w", context.Cause(ctx))
	}
	if err := r.options.Pace.Await(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}
