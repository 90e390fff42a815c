package inbox

import (
	"cmp"
	"time"

	"example.com/twinbox/engine/failure"
)

// RetryRules say how patient the inbox is with one handler; see [Retry]. The zero value of a field stands for the
// consumer's own rule, which is in [Config].
type RetryRules struct {
	// MaxAttempts bounds the attempts that fail for an unknown reason.
	MaxAttempts int
	// RetryMin and RetryMax bound the pause between attempts.
	RetryMin, RetryMax time.Duration
	// GiveUpAfter is how long after the first failure another one of unknown reason is the last, however many attempts are
	// left. Zero: attempts alone count.
	GiveUpAfter time.Duration
}

func (r RetryRules) valid() bool {
	return r.MaxAttempts >= 0 && r.RetryMin >= 0 && r.RetryMax >= 0 && r.GiveUpAfter >= 0 &&
		(r.RetryMin == 0 || r.RetryMax == 0 || r.RetryMin <= r.RetryMax)
}

// retriers are [Handlers] that have rules of their own for some types. A [*Mux] is one.
type retriers interface {
	Retry(eventType string) RetryRules
}

// rulesFor are the rules for events of the type. A longest pause of the handler's own is not below its shortest one.
func (c Config) rulesFor(eventType string) RetryRules {
	var own RetryRules
	if handlers, have := c.Handlers.(retriers); have {
		own = handlers.Retry(eventType)
	}
	rules := RetryRules{
		MaxAttempts: cmp.Or(own.MaxAttempts, c.MaxAttempts), GiveUpAfter: own.GiveUpAfter,
		RetryMin: cmp.Or(own.RetryMin, c.RetryMin), RetryMax: cmp.Or(own.RetryMax, c.RetryMax),
	}
	switch {
	case rules.RetryMin <= rules.RetryMax:
	case own.RetryMin == 0:
		rules.RetryMin = rules.RetryMax
	default:
		rules.RetryMax = rules.RetryMin
	}
	return rules
}

// retry decides, failure by failure, whether and when one event is tried again.
type retry struct {
	policy   *failure.Backoff
	rules    RetryRules
	attempts int       // that failed for an unknown reason
	since    time.Time // the first of them
}

type retryDecision struct {
	class      failure.Class
	worthwhile bool
	pause      time.Duration
}

func newRetry(rules RetryRules) *retry {
	return &retry{policy: &failure.Backoff{Min: rules.RetryMin, Max: rules.RetryMax}, rules: rules}
}

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
		if r.attempts++; r.attempts == 1 {
			r.since = time.Now()
		}
	}
	return retryDecision{
		class:      class,
		worthwhile: class == failure.Transient || class == failure.Unknown && r.hasTime(),
		pause:      r.policy.Next(),
	}
}

func (r *retry) hasTime() bool {
	late := r.rules.GiveUpAfter > 0 && r.attempts > 1 && time.Since(r.since) >= r.rules.GiveUpAfter
	return r.attempts < r.rules.MaxAttempts && !late
}
