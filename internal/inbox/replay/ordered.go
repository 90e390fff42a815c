package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/deadletter/operate"
)

// Options say who replays and how carefully. By is required.
type Options struct {
	By     string
	Reason string
	// DryRun tells what a replay would try. It runs no handler and changes nothing.
	DryRun bool
	// Force replays what is refused as too_old or replay_limit; the audit trail says so.
	Force bool
	// AcceptGap replays what is refused as version_gap, of the dead letters that are picked and of those parked behind
	// them: the versions before it will never come, or no longer matter, and are skipped as stale if they do. What is
	// refused as version_jump takes Force as well. The audit trail says so.
	AcceptGap bool
	// Pace bounds the dead letters per second, so that a replay leaves room for the live events; a dry run does
	// not wait. nil: no bound.
	Pace *Pace
	// OnProgress is called after each dead letter, in the goroutine of the replay. Default: nothing.
	OnProgress func(Result)
}

// Replay takes up the waiting dead letters of this consumer that the filter picks: through the inbox, under their own
// ids, key by key in the order of version and arrival. What parked behind a dead letter is taken up after it, picked or
// not, so that a key flows again. Each dead letter has one transaction: it locks the row, claims the id, compares the
// version, runs the handler, settles the dead letter and writes the audit row. So each event has its effect at most
// once and never over newer state, also if processes are killed and many replays and consumers run at once.
//
// A key stops at its first failure or refusal, other keys go on. A failed dead letter waits as before with its new
// error. When the surroundings fail (the database is down), the replay ends with an error and counts it against no
// dead letter; call it again to go on. The report is right also when there is an error.
func (r *Replayer) Replay(ctx context.Context, f operate.Filter, o Options) (Report, error) {
	run, err := r.newOrdered(f, o)
	if err != nil {
		return Report{}, err
	}
	var report Report
	for f.Limit == 0 || report.Matched < f.Limit {
		done, err := run.takeUp(ctx)
		switch {
		case errors.Is(err, errGone):
			return report, nil
		case err != nil:
			return report, err
		case done.Outcome == "":
			continue
		}
		report.add(done)
		if o.OnProgress != nil {
			o.OnProgress(done)
		}
	}
	return report, nil
}

// What waits behind a dead letter of the key at work is taken up with it: no replay would come back for it.
const pickOrdered = `(%s or key = $5 and class = 'parked')`

// newOrdered is a replay that an operator has ordered.
func (r *Replayer) newOrdered(f operate.Filter, o Options) (*run, error) {
	switch {
	case o.By == "":
		return nil, &operate.Error{Code: operate.CodeMissingOperator, Detail: "say who replays"}
	case f.Consumer != "" && f.Consumer != r.inbox.Consumer:
		return nil, &operate.Error{Code: operate.CodeInvalidFilter, Detail: "the filter names another consumer"}
	case f.State != "" && f.State != deadletter.Waiting:
		return nil, &operate.Error{Code: operate.CodeNotWaiting, Detail: "only waiting dead letters can be replayed"}
	case f.Limit < 0:
		return nil, &operate.Error{Code: operate.CodeInvalidFilter, Detail: "a limit is not negative"}
	}
	f.Consumer, f.State = r.inbox.Consumer, deadletter.Waiting
	where, args := f.Where(6)
	n := &run{
		Replayer: r, by: o.By, reason: o.Reason, force: o.Force, acceptGap: o.AcceptGap, dryRun: o.DryRun,
		pick: fmt.Sprintf(pickOrdered, where), args: args, key: []byte{}, version: -1, id: -1,
	}
	n.try = func(ctx context.Context, l deadletter.Letter, done *Result) error {
		if err := o.Pace.Await(ctx); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		return n.retryLetter(ctx, l, done)
	}
	if o.DryRun {
		n.try = n.checkLetter
	}
	return n, nil
}

// checkLetter says whether the dead letter would be tried.
func (r *run) checkLetter(ctx context.Context, l deadletter.Letter, done *Result) error {
	done.Outcome = WouldReplay
	_, err := r.readRecord(ctx, l)
	// What comes after another picked dead letter has that one before it.
	if err == nil && !bytes.Equal(r.key, deadletter.KeyStart(l.Key)) {
		err = refuseBehind(ctx, r.inbox.Pool, l.Key, l)
	}
	if refused, is := errors.AsType[*inbox.Refusal](err); is {
		done.refuse(refused)
		return nil
	}
	return err
}

// Report sums a replay up.
type Report struct {
	Matched   int      `json:"matched"` // dead letters that were looked at
	Applied   int      `json:"applied"`
	Duplicate int      `json:"duplicate"` // settled: the event had been applied
	Stale     int      `json:"stale"`     // settled: its key is further already
	Failed    int      `json:"failed"`
	Refused   int      `json:"refused"`
	Would     int      `json:"would_replay"`       // in a dry run
	Problems  []Result `json:"problems,omitempty"` // the first 100 that failed or were refused
}

// WouldReplay is the outcome of a dead letter that a dry run would have tried.
const WouldReplay = "would_replay"

const maxProblems = 100

func (r *Report) add(one Result) {
	r.Matched++
	counts := map[string]*int{
		string(inbox.Applied): &r.Applied, string(inbox.Duplicate): &r.Duplicate, string(inbox.Stale): &r.Stale,
		string(inbox.Failed): &r.Failed, WouldReplay: &r.Would,
	}
	*cmp.Or(counts[one.Outcome], &r.Refused)++
	if one.Code != "" && len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, one)
	}
}

// Pace keeps what one goroutine begins apart in time. Time that slow work took is not made up for: one beginning
// follows it at once and not a burst. Replays that share one keep to it together, one after the other. A nil pace is no
// bound.
type Pace struct {
	every time.Duration
	next  time.Time // no beginning before
}

// slowest keeps a rate next to nothing from running over into no bound at all.
const slowest = 100 * 365 * 24 * time.Hour

// NewPace bounds the beginnings per second. A rate that is not above 0 is no bound.
func NewPace(rate float64) *Pace {
	if rate <= 0 {
		return nil
	}
	return &Pace{every: time.Duration(min(float64(time.Second)/rate, float64(slowest)))}
}

// Await returns when the next one may begin, or early with the reason when ctx ends.
func (p *Pace) Await(ctx context.Context) error {
	if p == nil {
		return nil
	}
	now := time.Now()
	wait := max(0, p.next.Sub(now))
	p.next = now.Add(wait).Add(p.every)
	return inbox.Standalone{}.Pause(ctx, nil, wait)
}
