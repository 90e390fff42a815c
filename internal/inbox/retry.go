package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/twinbox/internal/failure"
)

// retry decides, failure by failure, whether and when one event is tried again.
type retry struct {
	policy   backoff.BackOff
	attempts int // that failed for an unknown reason
	limit    int
}

type verdict struct {
	class      failure.Class
	worthwhile bool
	pause      time.Duration
}

func newRetry(cfg Config) *retry { return &retry{policy: cfg.Backoff(), limit: cfg.MaxAttempts} }

// Backoff gives the pauses between attempts.
func (c Config) Backoff() backoff.BackOff {
	policy := backoff.NewExponentialBackOff()
	policy.InitialInterval, policy.MaxInterval, policy.Multiplier = c.RetryMin, c.RetryMax, 2
	policy.RandomizationFactor = 0.2
	return policy
}

// after sorts the error of the attempt that has just failed. Only unknown failures use up attempts: an hour without a
// database must not be what kills the event that came in its last second.
func (r *retry) after(err error) verdict {
	class := failure.Classify(err)
	if class == failure.Cancelled {
		// The delivery's own context is alive, so it was some context of the handler's.
		class = failure.Unknown
	}
	if class == failure.Unknown {
		r.attempts++
	}
	return verdict{
		class:      class,
		worthwhile: class == failure.Transient || class == failure.Unknown && r.attempts < r.limit,
		pause:      r.policy.NextBackOff(),
	}
}

// insist repeats a statement of the inbox's own until it works or the delivery is over.
func (in *Inbox) insist(ctx context.Context, what string, do func(context.Context) error) error {
	retry := newRetry(in.cfg)
	for {
		limited, cancel := context.WithTimeout(ctx, in.cfg.HandlerTimeout)
		err := do(limited)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), err))
		}
		wait := retry.policy.NextBackOff()
		in.log.WarnContext(ctx, "inbox statement failed", "what", what, "retry_in", wait, "error", err)
		if err := in.cfg.Host.Pause(ctx, err, wait); err != nil {
			return err
		}
	}
}
