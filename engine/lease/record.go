package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
	_ "example.com/twinbox/engine/failure/pgerrors" // what the database's errors mean
)

// verdict is what an attempt means for its row.
type verdict struct {
	result string // done, failed, postponed, unavailable, uncertain, superseded or stale
	record func(context.Context) error
}

// judge reads the verdict from where and how an attempt ended.
func (r *Runner) judge(c *Claim, err error) verdict {
	var stale *StaleError
	var superseded *SupersededError
	var undone *undoneError
	switch {
	case err == nil && c.begun:
		return verdict{"done", func(ctx context.Context) error { return r.done(ctx, c) }}
	case err == nil:
		err = errors.New("the effect returned without having begun")
		return verdict{"failed", func(ctx context.Context) error { return c.Failed(ctx, failure.Brief(err.Error())) }}
	case errors.As(err, &stale), errors.Is(err, errLost):
		return verdict{"stale", func(context.Context) error { return nil }} // nothing to record, nothing to be recorded on
	case errors.As(err, &superseded):
		return verdict{"superseded", func(context.Context) error { return nil }} // the row says so already
	case c.begun && !errors.As(err, &undone):
		return verdict{"uncertain", func(ctx context.Context) error { return c.Uncertain(ctx, failure.Brief(err.Error())) }}
	case failure.Classify(err) == failure.Permanent:
		return verdict{"failed", func(ctx context.Context) error { return c.Failed(ctx, failure.Brief(err.Error())) }}
	case failure.Classify(err) == failure.Transient:
		return verdict{"unavailable", func(ctx context.Context) error {
			return c.Release(ctx, failure.Brief(err.Error()), min(r.leases.settings.RetryMin, probeMax))
		}}
	case c.Attempt >= r.leases.settings.MaxAttempts:
		reason := failure.Brief(fmt.Sprintf("given up after %d attempts: %v", c.Attempt, err))
		return verdict{"failed", func(ctx context.Context) error { return c.Failed(ctx, reason) }}
	}
	return verdict{"postponed", func(ctx context.Context) error {
		return c.Retry(ctx, failure.Brief(err.Error()), r.leases.settings.pause(c.Attempt))
	}}
}

func (r *Runner) done(ctx context.Context, c *Claim) error {
	err := c.Done(ctx, func(ctx context.Context, tx pgx.Tx, at time.Time) error {
		if r.effect.Done == nil {
			return nil
		}
		return r.effect.Done(ctx, tx, c, at)
	})
	if err == nil && r.effect.Committed != nil {
		r.effect.Committed(c)
	}
	return err
}

const recordPause = 100 * time.Millisecond

// record writes down how an attempt ended. It insists for as long as a lease lasts: an effect that happened and is
// forgotten is an uncertain one.
func (r *Runner) record(ctx context.Context, c *Claim, err error) {
	v := r.judge(c, err)
	r.circuit.heard(v.result, r.leases.settings.RetryMin)
	recording, cancel := context.WithTimeout(ctx, r.leases.settings.Lease)
	defer cancel()
	again := time.NewTicker(recordPause)
	defer again.Stop()
	var stale *StaleError
	recorded := v.record(recording)
	for recorded != nil && !errors.As(recorded, &stale) && recording.Err() == nil {
		r.log.WarnContext(ctx, "outcome not recorded yet", "event_id", c.EventID,
			"correlation_id", c.CorrelationID, "result", v.result, "error", recorded)
		select {
		case <-again.C:
			recorded = v.record(recording)
		case <-recording.Done():
		}
	}
	if errors.As(recorded, &stale) {
		v.result = "stale"
	}
	r.leases.metrics.attempts.WithLabelValues(v.result).Inc()
	r.report(ctx, c, v.result, errors.Join(err, recorded))
}

func (r *Runner) report(ctx context.Context, c *Claim, result string, err error) {
	attrs := []any{"event_id", c.EventID, "attempt", c.Attempt, "result", result}
	if c.CorrelationID != "" {
		attrs = append(attrs, "correlation_id", c.CorrelationID)
	}
	switch {
	case err == nil:
		r.log.InfoContext(ctx, "effect done", attrs...)
	case result == "superseded":
		r.log.InfoContext(ctx, "effect skipped: a later one of its key has begun", append(attrs, "error", err)...)
	case result == "postponed" || result == "unavailable":
		r.log.WarnContext(ctx, "effect postponed", append(attrs, "error", err)...)
	default:
		r.log.ErrorContext(ctx, "effect not done", append(attrs, "error", err)...)
	}
}
