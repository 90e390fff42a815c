package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/failure"
	_ "example.com/twinbox/internal/failure/pgerrors" // what the database's errors mean
)

// Effect is what is done about a row.
type Effect struct {
	// Do carries the effect out: it prepares, calls [Claim.Begin], and takes the step. Its error decides:
	//
	//	nil                                  done
	//	[Skip]                               skipped
	//	permanent (see internal/failure)     failed
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

// Runner has the rows of one handler, says what may be done with them, and carries out their effects. Any number of
// runners may run, in one process or in many.
type Runner struct {
	handler  string
	pool     *pgxpool.Pool
	settings Settings
	timeout  time.Duration // of an effect that has begun
	effect   Effect
	log      *slog.Logger
	metrics  *metrics
	wake     chan struct{}

	mu      sync.Mutex
	held    map[*Claim]bool // waiting for a worker or with one
	slow    time.Duration   // the pause before a claim, while the other side cannot be reached
	failing time.Time       // since when claims have failed
	err     error           // of the last claim
}

// Wake says that there may be a row to take. It never blocks; polling finds what a lost wake-up missed.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// claimless is how long claims may fail before a runner is no longer healthy.
const claimless = 30 * time.Second

// Healthy is for a readiness check: it fails when the runner has been unable to claim anything for 30 s, so that no
// effect happens, and until a claim succeeds, which it then tries with every poll.
func (r *Runner) Healthy(context.Context) error { return r.failingFor(claimless) }

func (r *Runner) failingFor(limit time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || time.Since(r.failing) < limit {
		return nil
	}
	return fmt.Errorf("nothing can be claimed for %s: %w", time.Since(r.failing).Round(time.Second), r.err)
}

// At rest a runner looks for rows more and more rarely, up to every restPolls polls; and for what vanished claimants
// left behind, whose leases are much longer, every sweepPolls polls.
const (
	restPolls  = 10
	sweepPolls = 30
)

// purgesEvery is the longest pause between two purges of a runner.
const purgesEvery = time.Hour

// Run works until ctx ends, then finishes what is under way and gives back what it has not begun.
func (r *Runner) Run(ctx context.Context) error {
	s := r.settings
	claims := make(chan *Claim)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var chores, workers sync.WaitGroup
	chores.Go(func() { r.every(beating, s.Heartbeat, r.beat) })
	chores.Go(func() {
		r.every(ctx, min(sweepPolls*s.Poll, s.Lease/2), func(ctx context.Context) error {
			_, err := r.Sweep(ctx)
			return err
		})
	})
	if s.Retention > 0 {
		chores.Go(func() { r.every(ctx, min(purgesEvery, s.Retention), r.Purge) })
	}
	for range s.Workers {
		workers.Go(func() {
			for c := range claims {
				r.record(c, r.attempt(c))
			}
		})
	}
	r.dispatch(ctx, claims)
	close(claims)
	workers.Wait()
	stop()
	chores.Wait()
	return nil
}

// every does a chore at once, and again and again until ctx ends.
func (r *Runner) every(ctx context.Context, pause time.Duration, chore func(context.Context) error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := chore(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, unreachable, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// unreachable says that the database did not answer.
const unreachable = "leases cannot be reached"

// dispatch claims rows and hands them to the workers.
func (r *Runner) dispatch(ctx context.Context, to chan<- *Claim) {
	poll := r.settings.Poll
	for pause := poll; ctx.Err() == nil; {
		claims, err := r.claim(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, unreachable, "error", err)
		}
		for i, c := range claims {
			select {
			case to <- c:
			case <-ctx.Done():
				r.giveBack(ctx, claims[i:])
				return
			}
		}
		if len(claims) > 0 || err != nil {
			pause = poll // that a claim failed does not mean that there are no rows
		}
		if len(claims) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
			pause = poll
		case <-time.After(pause):
			pause = min(2*pause, restPolls*poll)
		}
	}
}

const giveBackTimeout = 2 * time.Second

// claim has the leases of what it claims renewed, and gives each the context of its attempt: all of them now, because
// the last one's lease must not end while it waits for a worker. A claim that is under way ends when the runner is
// stopped: one that was cancelled may have been made all the same, and its rows would wait for their leases to end.
func (r *Runner) claim(ctx context.Context) (claims []*Claim, err error) {
	n := r.settings.Batch
	r.mu.Lock()
	slow := r.slow
	r.mu.Unlock()
	if slow > 0 { // the other side was not there: ask with one row at a time
		n = 1
		_ = failure.Sleep(ctx, slow)
	}
	if err = context.Cause(ctx); err == nil {
		claiming, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := context.AfterFunc(ctx, func() { time.AfterFunc(giveBackTimeout, cancel) })
		defer stop()
		claims, err = r.Claim(claiming, n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil {
		r.failing = time.Now()
	}
	r.err = err
	for _, c := range claims {
		c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		r.held[c] = true
	}
	return claims, err
}

// giveBack returns claims that no worker took before shutdown, so that others need not wait for their leases to end.
func (r *Runner) giveBack(ctx context.Context, claims []*Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	for _, c := range claims {
		r.drop(c, nil)
		if err := c.Release(ctx, "", 0); err != nil {
			r.log.WarnContext(ctx, "claim not given back", "event_id", c.EventID, "correlation_id", c.CorrelationID,
				"error", err)
		}
	}
}

func (r *Runner) drop(c *Claim, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.cancel(cause)
	delete(r.held, c)
}

// errLost ends the context of an attempt whose lease is lost.
var errLost = errors.New("the lease has been lost")

// beat renews the leases of everything that is held, in one statement, and ends the attempts whose lease is lost.
func (r *Runner) beat(ctx context.Context) error {
	r.mu.Lock()
	claims := slices.Collect(maps.Keys(r.held))
	r.mu.Unlock()
	if len(claims) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.settings.Heartbeat)
	defer cancel()
	lost, err := r.Heartbeat(ctx, claims...)
	for _, c := range lost { // or finished a moment ago: then this changes nothing
		r.drop(c, errLost)
	}
	return err
}

// attempt carries the effect out once.
func (r *Runner) attempt(c *Claim) (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, r.effect.Timeout)
	defer cancel()
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

// probeMax is the longest pause between two attempts to reach the other side, and so the delay after its return.
const probeMax = 2 * time.Second

// settle reads from where and how an attempt ended what it means for its row, and records that: done, failed, skipped,
// postponed, unavailable, uncertain, superseded or stale.
func (r *Runner) settle(ctx context.Context, c *Claim, err error) (result string, recorded error) {
	settings := r.settings
	switch {
	case err == nil && c.begun:
		recorded = c.Done(ctx, r.effect.Done)
		if recorded == nil && r.effect.Committed != nil {
			r.effect.Committed(c)
		}
		return "done", recorded
	case err == nil:
		err = failure.AsPermanent(errors.New("the effect returned without having begun"))
	case errors.Is(err, ErrStale), errors.Is(err, errLost):
		return "stale", nil // nothing to be recorded on
	case errors.Is(err, ErrSuperseded):
		return "superseded", nil // the row says so already
	}
	reason := failure.Brief(err.Error())
	_, undone := errors.AsType[*undoneError](err)
	_, skipped := errors.AsType[*skipError](err)
	switch class := failure.Classify(err); {
	case c.begun && !undone:
		return "uncertain", c.Uncertain(ctx, reason)
	case skipped:
		return "skipped", c.Skipped(ctx, reason)
	case class == failure.Transient:
		return "unavailable", c.Release(ctx, reason, min(settings.RetryMin, probeMax))
	case class != failure.Permanent && c.Attempt < settings.MaxAttempts:
		return "postponed", c.Retry(ctx, reason, settings.pause(c.Attempt))
	case class != failure.Permanent:
		reason = failure.Brief(fmt.Sprintf("given up after %d attempts: %v", c.Attempt, err))
	}
	return "failed", c.Failed(ctx, reason)
}

const recordPause = 100 * time.Millisecond

// record writes down how an attempt ended, and lets go of the claim. It insists for as long as a lease lasts: an effect
// that happened and is forgotten is an uncertain one.
func (r *Runner) record(c *Claim, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), r.settings.Lease)
	defer cancel()
	result, recorded := r.settle(ctx, c, err)
	for recorded != nil && !errors.Is(recorded, ErrStale) {
		r.log.WarnContext(ctx, "outcome not recorded yet", "event_id", c.EventID,
			"correlation_id", c.CorrelationID, "result", result, "error", recorded)
		if failure.Sleep(ctx, recordPause) != nil {
			break
		}
		_, recorded = r.settle(ctx, c, err)
	}
	if errors.Is(recorded, ErrStale) {
		result = "stale"
	}
	r.metrics.attempts.WithLabelValues(result).Inc()
	attrs := []any{"event_id", c.EventID, "attempt", c.Attempt, "result", result}
	if c.CorrelationID != "" {
		attrs = append(attrs, "correlation_id", c.CorrelationID)
	}
	if err = errors.Join(err, recorded); err != nil {
		attrs = append(attrs, "error", err)
	}
	switch {
	case err == nil && result == "done":
		r.log.InfoContext(ctx, "effect done", attrs...)
	case result == "superseded":
		r.log.InfoContext(ctx, "effect skipped: a later one of its key has begun", attrs...)
	case result == "skipped":
		r.log.InfoContext(ctx, "effect skipped", attrs...)
	case result == "postponed" || result == "unavailable":
		r.log.WarnContext(ctx, "effect postponed", attrs...)
	default:
		r.log.ErrorContext(ctx, "effect not done", attrs...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.cancel(nil)
	delete(r.held, c)
	switch result {
	case "stale", "superseded", "skipped": // says nothing about the other side
	case "unavailable":
		r.slow = min(max(r.slow*2, r.settings.RetryMin), probeMax)
	default:
		r.slow = 0
	}
}
