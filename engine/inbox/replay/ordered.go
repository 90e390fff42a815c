package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox"
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
	// Limit bounds how many dead letters are tried. 0: the filter's limit, and all that are picked where it has none.
	Limit int
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
	started := time.Now()
	for err == nil && (run.options.Limit == 0 || run.report.Matched < run.options.Limit) {
		err = run.replayNext(ctx)
	}
	run.report.Took = time.Since(started)
	if errors.Is(err, errGone) {
		err = nil
	}
	return run.report, err
}

// ordered is a replay that an operator has ordered.
type ordered struct {
	run
	options Options
	where   string
	args    []any
	lastKey []byte // that was looked at last
	report  Report
}

func (r *Replayer) newOrdered(f operate.Filter, o Options) (*ordered, error) {
	switch {
	case o.By == "":
		return nil, &operate.Error{Code: operate.CodeMissingOperator, Detail: "say who replays"}
	case f.Consumer != "" && f.Consumer != r.inbox.Consumer:
		return nil, &operate.Error{Code: operate.CodeInvalidFilter, Detail: "the filter names another consumer"}
	case f.State != "" && f.State != deadletter.Waiting:
		return nil, &operate.Error{Code: operate.CodeNotWaiting, Detail: "only waiting dead letters can be replayed"}
	case o.Limit < 0 || f.Limit < 0:
		return nil, &operate.Error{Code: operate.CodeInvalidFilter, Detail: "a limit is not negative"}
	}
	o.Limit = cmp.Or(o.Limit, f.Limit)
	f.Consumer, f.State = r.inbox.Consumer, deadletter.Waiting
	n := &ordered{options: o, run: run{
		Replayer: r, by: o.By, reason: o.Reason, force: o.Force, acceptGap: o.AcceptGap, dryRun: o.DryRun,
		position: position{key: []byte{}, version: -1, id: -1},
	}}
	n.next, n.try = n.selectNext, n.retryPaced
	if o.DryRun {
		n.try = n.checkLetter
	}
	n.where, n.args = f.Where(6)
	return n, nil
}

// What waits behind a dead letter of the key at work is taken up with it: no replay would come back for it.
const nextLetter = `
select ` + deadletter.Columns + ` from public.dead_letter
where consumer = $1 and state = 'waiting' and (key_start, version, id) > ($2, $3, $4)
    and (%s or key = $5 and class = 'parked')
order by key_start, version, id limit 1`

// selectNext finds one at a time: what the consumer parks meanwhile behind the key at work is then found in its place.
func (r *ordered) selectNext(ctx context.Context, q audit.Querier) (deadletter.Letter, error) {
	args := []any{r.inbox.Consumer, r.position.key, r.position.version, r.position.id, r.flowing}
	return selectLetter(ctx, q, fmt.Sprintf(nextLetter, r.where), append(args, r.args...)...)
}

// replayNext takes up the next dead letter, or says what would be tried.
func (r *ordered) replayNext(ctx context.Context) error {
	l, done, err := r.takeUp(ctx)
	if err != nil || done.Outcome == "" {
		return err
	}
	if !bytes.Equal(r.lastKey, l.Key) || r.report.Keys == 0 {
		r.lastKey = l.Key
		r.report.Keys++
	}
	r.report.add(done)
	if r.options.OnProgress != nil {
		r.options.OnProgress(done)
	}
	return nil
}

// retryPaced keeps to the rate.
func (r *ordered) retryPaced(ctx context.Context, l deadletter.Letter, done *Result) error {
	if err := r.options.Pace.Await(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return r.retryLetter(ctx, l, done)
}

// checkLetter says whether the dead letter would be tried.
func (r *ordered) checkLetter(ctx context.Context, l deadletter.Letter, done *Result) error {
	done.Outcome = WouldReplay
	_, err := r.readRecord(ctx, l)
	if err == nil && !bytes.Equal(r.lastKey, l.Key) { // what comes after another picked dead letter has that one before it
		err = r.refuseBehind(ctx, r.inbox.Pool, l.Key, l)
	}
	if refused, is := errors.AsType[*inbox.Refusal](err); is {
		done.Outcome, done.Code, done.Error = Refused, refused.Code, refused.Error()
		return nil
	}
	return err
}

// Report sums a replay up.
type Report struct {
	Matched   int           `json:"matched"` // dead letters that were looked at
	Keys      int           `json:"keys"`    // of these
	Applied   int           `json:"applied"`
	Duplicate int           `json:"duplicate"` // settled: the event had been applied
	Stale     int           `json:"stale"`     // settled: its key is further already
	Failed    int           `json:"failed"`
	Refused   int           `json:"refused"`
	Would     int           `json:"would_replay"`       // in a dry run
	Problems  []Result      `json:"problems,omitempty"` // the first 100 that failed or were refused
	Took      time.Duration `json:"took_ns"`
}

// WouldReplay is the outcome of a dead letter that a dry run would have tried.
const WouldReplay = "would_replay"

const maxProblems = 100

func (r *Report) add(one Result) {
	r.Matched++
	switch one.Outcome {
	case string(inbox.Applied):
		r.Applied++
	case string(inbox.Duplicate):
		r.Duplicate++
	case string(inbox.Stale):
		r.Stale++
	case WouldReplay:
		r.Would++
	case string(inbox.Failed):
		r.Failed++
	default:
		r.Refused++
	}
	if one.Code != "" && len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, one)
	}
}

// Pace keeps what one goroutine begins apart in time. Time that slow work took is not made up for: one beginning
// follows it at once and not a burst. Replays that share one keep to it together, one after the other.
type Pace struct {
	every time.Duration // 0: no bound
	next  time.Time     // no beginning before
}

// slowest keeps a rate next to nothing from running over into no bound at all.
const slowest = 100 * 365 * 24 * time.Hour

// NewPace bounds the beginnings per second. A rate that is not above 0 is no bound.
func NewPace(rate float64) *Pace {
	if rate <= 0 {
		return &Pace{}
	}
	return &Pace{every: time.Duration(min(float64(time.Second)/rate, float64(slowest)))}
}

// Await returns when the next one may begin, or early with the reason when ctx ends. A nil pace is no bound.
func (p *Pace) Await(ctx context.Context) error {
	if p == nil || p.every == 0 {
		return nil
	}
	now := time.Now()
	if wait := p.next.Sub(now); wait > 0 {
		if err := (inbox.Standalone{}).Pause(ctx, nil, wait); err != nil {
			return err
		}
	} else {
		p.next = now
	}
	p.next = p.next.Add(p.every)
	return nil
}
