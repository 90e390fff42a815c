package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// retries decides, failure by failure, whether one event is tried again.
type retries struct {
	RetryRules
	pauses   failure.Backoff
	attempts int       // that failed for an unknown reason
	since    time.Time // the first of them
}

// retryOf are the retries of an event of the type. A longest pause of the handler's own is not below its shortest one.
func (c *Config) retryOf(eventType string) retries {
	var own RetryRules
	if handlers, have := c.Handlers.(retriers); have {
		own = handlers.Retry(eventType)
	}
	rules := RetryRules{
		MaxAttempts: cmp.Or(own.MaxAttempts, c.MaxAttempts), GiveUpAfter: own.GiveUpAfter,
		RetryMin: cmp.Or(own.RetryMin, c.RetryMin), RetryMax: cmp.Or(own.RetryMax, c.RetryMax),
	}
	if own.RetryMin == 0 {
		rules.RetryMin = min(rules.RetryMin, rules.RetryMax)
	}
	rules.RetryMax = max(rules.RetryMin, rules.RetryMax)
	return retries{RetryRules: rules, pauses: failure.Backoff{Min: rules.RetryMin, Max: rules.RetryMax}}
}

// Backoff gives the pauses between attempts.
func (c Config) Backoff() *failure.Backoff { return &failure.Backoff{Min: c.RetryMin, Max: c.RetryMax} }

// after sorts the error of the attempt that has just failed. Only unknown failures use up attempts: an hour without a
// database must not be what kills the event that came in its last second.
func (r *retries) after(err error) (class failure.Class, again bool) {
	class = failure.Classify(err)
	if class == failure.Cancelled {
		// The delivery's own context is alive, so it was some context of the handler's.
		class = failure.Unknown
	}
	if class != failure.Unknown {
		return class, class == failure.Transient
	}
	if r.attempts++; r.attempts == 1 {
		r.since = time.Now()
	}
	late := r.GiveUpAfter > 0 && r.attempts > 1 && time.Since(r.since) >= r.GiveUpAfter
	return class, r.attempts < r.MaxAttempts && !late
}

// lateError is what becomes of a handler that was cut off by its timeout: a failure for an unknown reason, so that one
// that is always late uses up its attempts.
type lateError struct {
	limit time.Duration
	err   error
}

// late says so of an error that came when the time was over, unless that says better itself what it is.
//
// The error may be less than the truth. pgx closes a connection whose statement the timeout has ended, so a handler
// that overlooks that and goes on hears of a closed connection. That is no lost one, which would be tried again for
// ever.
func late(err error, limit time.Duration) error {
	var coded interface{ ErrorCode() string }
	cutOff := failure.Examine(err).Code == connClosed
	if errors.As(err, &coded) || !cutOff && failure.Classify(err) != failure.Unknown {
		return fmt.Errorf("handler ran longer than %s: %w", limit, err)
	}
	return &lateError{limit, err}
}

const connClosed = "postgres_conn_closed"

func (e *lateError) Error() string {
	return fmt.Sprintf("handler ran longer than %s: %s", e.limit, e.err)
}

// ErrorCode implements what dead letters ask for.
func (*lateError) ErrorCode() string { return CodeHandlerTimeout }

// Unwrap leaves out an error that would be taken for the surroundings' fault.
func (e *lateError) Unwrap() []error {
	if failure.Classify(e.err) != failure.Unknown {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.err}
}
