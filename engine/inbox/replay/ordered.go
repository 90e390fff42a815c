package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox"
)

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
	for err == nil && !run.ended && !run.reachedLimit() {
		err = run.replayNext(ctx)
	}
	run.report.Took = time.Since(started)
	return run.report, err
}

// ordered is a replay that an operator has ordered.
type ordered struct {
	*run
	options Options
	where   string
	args    []any
	lastKey []byte // that was looked at last
	ended   bool
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
	if o.Limit == 0 {
		o.Limit = f.Limit
	}
	if o.OnProgress == nil {
		o.OnProgress = func(Result) {}
	}
	f.Consumer, f.State = r.inbox.Consumer, deadletter.Waiting
	if o.DryRun {
		o.Pace = nil
	}
	n := &ordered{options: o, run: &run{
		Replayer: r, order: order{by: o.By, reason: o.Reason, force: o.Force, acceptGap: o.AcceptGap},
		position: position{key: []byte{}, version: -1, id: -1},
	}}
	n.next = n.selectNext
	n.where, n.args = f.Where(6)
	return n, nil
}

// reachedLimit says that as many dead letters were looked at as may be.
func (r *ordered) reachedLimit() bool {
	return r.options.Limit > 0 && r.report.Matched >= r.options.Limit
}

// What waits behind a dead letter of the key at work is taken up with it: no replay would come back for it.
const nextLetters = `
select * from public.dead_letter
where consumer = $1 and state = 'waiting' and (key_start, version, id) > ($2, $3, $4)
    and (%s or key = $5 and class = 'parked')
order by key_start, version, id limit %d`

func (r *ordered) selectNext(ctx context.Context, q audit.Querier, limit int) ([]deadletter.Letter, error) {
	sql := operate.Page(fmt.Sprintf(nextLetters, r.where, limit), "key_start, version, id")
	args := []any{r.inbox.Consumer, r.position.key, r.position.version, r.position.id, r.flowing}
	return selectLetters(ctx, q, sql, append(args, r.args...)...)
}

const dryRunPage = 200

// replayNext finds the next dead letter and takes it up. One at a time: what the consumer parks meanwhile behind the
// key at work is then found in its place. In a dry run nothing changes, so that a page can be read at once.
func (r *ordered) replayNext(ctx context.Context) error {
	limit := 1
	if r.options.DryRun {
		limit = dryRunPage
	}
	letters, err := r.selectNext(ctx, r.inbox.Pool, limit)
	if err != nil {
		return err
	}
	r.ended = len(letters) == 0 // a page of large dead letters is short
	for _, l := range letters {
		if r.reachedLimit() {
			return nil
		}
		if err := r.replayLetter(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// replayLetter brings one dead letter to its outcome, or says what would be tried, and moves on.
func (r *ordered) replayLetter(ctx context.Context, l deadletter.Letter) error {
	if bytes.Equal(r.position.key, deadletter.KeyStart(l.Key)) && r.position.id == math.MaxInt64 {
		return nil // read ahead in a dry run, of a key that has stopped
	}
	if err := r.awaitPace(ctx); err != nil {
		return err
	}
	done := resultOf(l)
	try := r.retryLetter
	if r.options.DryRun {
		try = r.checkLetter
	}
	if err := try(ctx, l, &done); err != nil {
		return err
	}
	if done.Outcome == "" { // another replay settled it, or something came before it: look again
		return nil
	}
	if !bytes.Equal(r.lastKey, l.Key) || r.report.Keys == 0 {
		r.lastKey = l.Key
		r.report.Keys++
	}
	r.advance(l, done)
	if r.options.DryRun {
		r.flowing = nil // it counts what was picked
	} else if err := r.noteTried(ctx, l, done); err != nil {
		return err
	}
	r.report.add(done)
	r.options.OnProgress(done)
	return nil
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

// awaitPace keeps to the rate.
func (r *ordered) awaitPace(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("replay: %w", context.Cause(ctx))
	}
	if err := r.options.Pace.Await(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}
