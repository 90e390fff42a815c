package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/twinbox/internal/failure"
)

// Runner carries out the effects of one handler. Any number may run.
type Runner struct {
	cfg     Config
	metrics *metrics
	wake    chan struct{}
	turn    sync.Mutex
	failing atomic.Pointer[claimFailure]
}

type claimFailure struct {
	since time.Time
	err   error
}

// Wake reports that a row may be due. It never blocks. Polling covers lost calls.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

const (
	longestFailure = 30 * time.Second // of claims, while the runner is healthy
	claimTimeout   = 5 * time.Second
	choreTimeout   = 30 * time.Second
	restPolls      = 10 // in polls, while no row is due
	purgePause     = 10 * time.Minute
	recordPause    = 100 * time.Millisecond
	probePause     = 2 * time.Second
)

// Healthy fails when every claim has failed for 30 s, until a claim succeeds.
func (r *Runner) Healthy(context.Context) error {
	f := r.failing.Load()
	if f == nil || time.Since(f.since) < longestFailure {
		return nil
	}
	return fmt.Errorf("no row can be claimed for %s: %w", time.Since(f.since).Round(time.Second), f.err)
}

// Run works until ctx ends, then lets running attempts end. It returns nil.
func (r *Runner) Run(ctx context.Context) error {
	s := r.cfg.Settings
	var group sync.WaitGroup
	group.Go(func() { r.repeat(ctx, min(restPolls*s.Poll, s.Lease/2), r.Sweep) })
	group.Go(func() { r.repeat(ctx, purgePause, r.Purge) })
	for range s.Workers {
		group.Go(func() { r.work(ctx) })
	}
	group.Wait()
	return nil
}

func (r *Runner) repeat(ctx context.Context, pause time.Duration, chore func(context.Context) error) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, choreTimeout)
		r.warn(ctx, chore(limited))
		cancel()
		_ = failure.Sleep(ctx, pause)
	}
}

func (r *Runner) warn(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "leases cannot be reached", "error", err)
	}
}

func (r *Runner) work(ctx context.Context) {
	for c := r.next(ctx); c != nil; c = r.next(ctx) {
		if r.carryOut(context.WithoutCancel(ctx), c) == "unavailable" {
			_ = failure.Sleep(ctx, r.probePause())
		}
	}
}

func (r *Runner) probePause() time.Duration { return min(r.cfg.Settings.RetryMin, probePause) }

func (r *Runner) next(ctx context.Context) *Claim {
	r.turn.Lock()
	defer r.turn.Unlock()
	poll := r.cfg.Settings.Poll
	for pause := poll; ctx.Err() == nil; {
		c, err := r.Claim(ctx)
		switch {
		case c != nil:
			return c
		case err != nil:
			r.warn(ctx, err)
			pause = poll
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
			pause = poll
		case <-time.After(pause):
			pause = min(2*pause, restPolls*poll)
		}
	}
	return nil
}

func (r *Runner) carryOut(ctx context.Context, c *Claim) (result string) {
	ctx, finished := context.WithCancel(ctx)
	attempting, lose := context.WithCancelCause(ctx)
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() { c.sendHeartbeats(ctx, lose) })
	defer heartbeats.Wait()
	defer finished()

	err := r.attempt(attempting, c)
	o := r.judge(c, err)
	recorded := c.insist(ctx, o)
	if errors.Is(recorded, ErrStale) {
		o.result = "stale"
	}
	if recorded == nil && o.state == Done && r.cfg.Effect.Committed != nil {
		r.cfg.Effect.Committed(c)
	}
	r.metrics.attempts.WithLabelValues(o.result).Inc()
	r.logResult(ctx, c, o.result, errors.Join(err, recorded))
	return o.result
}

func (c *Claim) sendHeartbeats(ctx context.Context, lose context.CancelCauseFunc) {
	pause := c.runner.cfg.Settings.Heartbeat
	for failure.Sleep(ctx, pause) == nil {
		renewing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause)
		err := c.renew(renewing)
		cancel()
		if errors.Is(err, ErrStale) {
			lose(err)
			return
		}
		c.runner.warn(ctx, err)
	}
}

func (r *Runner) attempt(ctx context.Context, c *Claim) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Effect.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err = r.cfg.Effect.Do(ctx, c); err == nil && !c.begun {
		err = failure.AsPermanent(errors.New("the effect returned without having begun"))
	}
	return err
}

func (r *Runner) judge(c *Claim, err error) outcome {
	if err == nil {
		return outcome{result: "done", state: Done}
	}
	s, reason := r.cfg.Settings, failure.Brief(err.Error())
	class, attemptsLeft := failure.Classify(err), c.Attempt < s.MaxAttempts
	_, undone := errors.AsType[*undoneError](err)
	_, skipped := errors.AsType[*skipError](err)
	switch {
	case c.begun && !undone && s.OnUncertain == Resend && attemptsLeft:
		return outcome{result: "uncertain", state: Pending, reason: reason, pause: s.pause(c.Attempt), doubts: 1}
	case c.begun && !undone:
		return outcome{result: "uncertain", state: Uncertain, reason: reason, doubts: 1}
	case skipped:
		return outcome{result: "skipped", state: Skipped, reason: reason}
	case class == failure.Permanent:
		return outcome{result: "failed", state: Failed, reason: reason}
	case class == failure.Transient:
		return outcome{result: "unavailable", state: Pending, reason: reason, pause: r.probePause(), uncounted: 1}
	case attemptsLeft:
		return outcome{result: "postponed", state: Pending, reason: reason, pause: s.pause(c.Attempt)}
	}
	reason = failure.Brief(fmt.Sprintf("given up after %d attempts: %v", c.Attempt, err))
	return outcome{result: "failed", state: Failed, reason: reason}
}

// insist tries for as long as a lease lasts. An effect that is not recorded becomes uncertain.
func (c *Claim) insist(ctx context.Context, o outcome) error {
	ctx, cancel := context.WithTimeout(ctx, c.runner.cfg.Settings.Lease)
	defer cancel()
	backoff := failure.Backoff{Min: recordPause, Max: probePause}
	for {
		err := c.record(ctx, o)
		if err == nil || errors.Is(err, ErrStale) {
			return err
		}
		c.runner.cfg.Log.WarnContext(ctx, "outcome not recorded yet", "event_id", c.EventID,
			"correlation_id", c.CorrelationID, "result", o.result, "error", err)
		if failure.Sleep(ctx, backoff.Next()) != nil {
			return err
		}
	}
}

func (r *Runner) logResult(ctx context.Context, c *Claim, result string, err error) {
	attrs := []any{"event_id", c.EventID, "correlation_id", c.CorrelationID, "attempt", c.Attempt, "result", result}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	switch log := r.cfg.Log; result {
	case "done":
		log.InfoContext(ctx, "effect done", attrs...)
	case "skipped":
		log.InfoContext(ctx, "effect skipped", attrs...)
	case "postponed", "unavailable":
		log.WarnContext(ctx, "effect postponed", attrs...)
	default:
		log.ErrorContext(ctx, "effect not done", attrs...)
	}
}
