package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Effect is what is done about a row.
type Effect struct {
	// Do carries the effect out: it prepares, calls [Claim.Begin], and takes the step. Its error decides:
	//
	//	nil                                  done
	//	permanent (see engine/failure)     failed
	//	transient                            tried again soon, not counted, and the runner goes slow
	//	any other                            tried again after a growing pause, until the attempts are used up
	//
	// After Begin this holds for errors marked with [Undone] only; any other leaves the outcome uncertain, and so does a
	// panic. ctx ends with Timeout and not with the process's shutdown.
	Do func(ctx context.Context, c *Claim) error
	// Done, if set, runs in the transaction that records the effect. at is the database's clock.
	Done func(ctx context.Context, tx pgx.Tx, c *Claim, at time.Time) error
	// Committed, if set, is called after that transaction.
	Committed func(c *Claim)
	// Purged, if set, runs in the transaction that removes old rows: it removes what belongs to their events.
	Purged func(ctx context.Context, tx pgx.Tx, eventIDs []string) error
	// Timeout is for one call of Do, preparation included. Default: the lease.
	Timeout time.Duration
}

// Runner carries out the effects of one handler. Any number of runners may run, in one process or in many.
type Runner struct {
	leases  *Leases
	effect  Effect
	log     *slog.Logger
	wake    chan struct{}
	held    held
	circuit circuit
	reach   reach
}

// NewRunner makes a runner; log may be nil.
func NewRunner(leases *Leases, effect Effect, log *slog.Logger) *Runner {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if effect.Timeout == 0 {
		effect.Timeout = leases.settings.Lease
	}
	log = log.With("handler", leases.handler)
	return &Runner{
		leases: leases, effect: effect, log: log, wake: make(chan struct{}, 1),
		held: held{claims: map[*Claim]context.CancelCauseFunc{}},
	}
}

// Wake says that there may be a row to take. It never blocks; polling finds what a lost wake-up missed.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends, then finishes what is under way and gives back what it has not begun.
func (r *Runner) Run(ctx context.Context) error {
	tasks := make(chan task)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beats, workers sync.WaitGroup
	beats.Go(func() { r.beat(beating) })
	beats.Go(func() { r.sweep(ctx) })
	beats.Go(func() { r.purge(ctx) })
	for range r.leases.settings.Workers {
		workers.Go(func() {
			for t := range tasks {
				r.run(t)
			}
		})
	}
	r.dispatch(ctx, tasks)
	close(tasks)
	workers.Wait()
	stop()
	beats.Wait()
	return nil
}

// task is a claim and the context of its attempt, which ends early when the lease is lost.
type task struct {
	ctx   context.Context
	claim *Claim
}

// At rest a runner looks for rows more and more rarely, up to every restPolls polls; and for what vanished claimants
// left behind, whose leases are much longer, every sweepPolls polls.
const (
	restPolls  = 10
	sweepPolls = 30
)

// dispatch claims rows and hands them to the workers.
func (r *Runner) dispatch(ctx context.Context, tasks chan<- task) {
	poll := r.leases.settings.Poll
	for pause := poll; ; pause = min(2*pause, restPolls*poll) {
		for ctx.Err() == nil && r.round(ctx, tasks) {
			pause = poll
		}
		if r.reach.check(0) != nil {
			pause = poll // that a claim failed does not mean that there are no rows
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-r.wake:
			pause = poll
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// round claims once and reports whether it is worth claiming again at once.
func (r *Runner) round(ctx context.Context, tasks chan<- task) (more bool) {
	n := r.leases.settings.Batch
	if pause := r.circuit.pause(); pause > 0 { // the other side was not there: ask with one row at a time
		n = 1
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	claims, err := r.claim(ctx, n)
	r.reach.heard(err)
	r.reportUnreachable(ctx, err)
	waiting := make([]task, len(claims))
	for i, c := range claims { // all of them now: the last one's lease must not end while it waits for a worker
		waiting[i] = task{r.held.add(context.WithoutCancel(ctx), c), c}
	}
	for i, t := range waiting {
		select {
		case tasks <- t:
		case <-ctx.Done():
			r.giveBack(ctx, claims[i:])
			return false
		}
	}
	return len(claims) > 0
}

// claim lets a claim that is under way end when the runner is stopped: one that was cancelled may have been made all
// the same, and its rows would wait for their leases to end.
func (r *Runner) claim(ctx context.Context, n int) ([]*Claim, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	claiming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(giveBackTimeout, cancel) })
	defer stop()
	return r.leases.Claim(claiming, n)
}

// giveBack returns claims that no worker took before shutdown, so that others need not wait for their leases to end.
func (r *Runner) giveBack(ctx context.Context, claims []*Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	for _, c := range claims {
		r.held.drop(c)
		if err := c.Release(ctx, "", 0); err != nil {
			r.log.WarnContext(ctx, "claim not given back", "event_id", c.EventID, "correlation_id", c.CorrelationID,
				"error", err)
		}
	}
}

const giveBackTimeout = 2 * time.Second

// sweep takes care of what vanished claimants left behind, also while there is always more to claim.
func (r *Runner) sweep(ctx context.Context) {
	tick := time.NewTicker(min(sweepPolls*r.leases.settings.Poll, r.leases.settings.Lease/2))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		swept, err := r.leases.Sweep(ctx)
		r.reportUnreachable(ctx, err)
		for _, s := range swept {
			r.reportSwept(ctx, s)
		}
	}
}

func (r *Runner) reportSwept(ctx context.Context, s Swept) {
	if s.State == Failed {
		r.leases.metrics.attempts.WithLabelValues(string(Failed)).Inc()
		r.log.ErrorContext(ctx, "effect given up: its claimants vanished before they had begun", "event_id", s.EventID)
		return
	}
	r.leases.metrics.attempts.WithLabelValues(string(Uncertain)).Inc()
	r.log.ErrorContext(ctx, "outcome is uncertain: the claimant vanished after it had begun",
		"event_id", s.EventID, "state", s.State)
}

// run makes one attempt and records how it ended.
func (r *Runner) run(t task) {
	defer r.held.drop(t.claim)
	ctx, cancel := context.WithTimeout(t.ctx, r.effect.Timeout)
	err := r.do(ctx, t.claim)
	cancel()
	r.record(context.WithoutCancel(t.ctx), t.claim, err)
}

func (r *Runner) do(ctx context.Context, c *Claim) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.effect.Do(ctx, c)
}

// errLost ends the context of an attempt whose lease is lost.
var errLost = errors.New("the lease has been lost")
