package inbox

import (
	"time"

	"example.com/twinbox/engine/failure"
)

// retry decides, failure by failure, whether and when one event is tried again.
type retry struct {
	policy   *failure.Backoff
	attempts int // that failed for an unknown reason
	limit    int
}

type retryDecision struct {
	class      failure.Class
	worthwhile bool
	pause      time.Duration
}

func newRetry(cfg Config) *retry { return &retry{policy: cfg.Backoff(), limit: cfg.MaxAttempts} }

// Backoff gives the pauses between attempts.
func (c Config) Backoff() *failure.Backoff { return &failure.Backoff{Min: c.RetryMin, Max: c.RetryMax} }

// after sorts the error of the attempt that has just failed. Only unknown failures use up attempts: an hour without a
// database must not be what kills the event that came in its last second.
func (r *retry) after(err error) retryDecision {
	class := failure.Classify(err)
	if class == failure.Cancelled {
		// The delivery's own context is alive, so it was some context of the handler's.
		class = failure.Unknown
	}
	if class == failure.Unknown {
		r.attempts++
	}
	return retryDecision{
		class:      class,
		worthwhile: class == failure.Transient || class == failure.Unknown && r.attempts < r.limit,
		pause:      r.policy.Next(),
	}
}
