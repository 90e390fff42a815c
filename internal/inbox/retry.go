package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/failure"
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

// retries decides, failure by failure, whether one event is tried again.
type retries struct {
	maxAttempts int
	giveUpAfter time.Duration
	pauses      failure.Backoff
	attempts    int       // that failed for an unknown reason
	since       time.Time // the first of them
}

// retryOf are the retries of an event of the type. [Handlers] may have rules of their own for some types, as a [*Mux]
// does; a longest pause is not below a shortest one of the handler's own.
func (c *Config) retryOf(eventType string) *retries {
	var own RetryRules
	if handlers, have := c.Handlers.(interface {
		Retry(eventType string) RetryRules
	}); have {
		own = handlers.Retry(eventType)
	}
	return &retries{
		maxAttempts: cmp.Or(own.MaxAttempts, c.MaxAttempts), giveUpAfter: own.GiveUpAfter,
		pauses: failure.Backoff{
			Min: cmp.Or(own.RetryMin, c.RetryMin), Max: cmp.Or(own.RetryMax, max(c.RetryMax, own.RetryMin)),
		},
	}
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
	late := r.giveUpAfter > 0 && r.attempts > 1 && time.Since(r.since) >= r.giveUpAfter
	return class, r.attempts < r.maxAttempts && !late
}

const connClosed = "postgres_conn_closed"

// late says of an error that it came when the time was over. Unless it says better itself what it is, it becomes a
// failure for an unknown reason, so that a handler that is always late uses up its attempts.
//
// The error may be less than the truth. pgx closes a connection whose statement the timeout has ended, so a handler
// that overlooks that and goes on hears of a closed connection. That is no lost one, which would be tried again for
// ever: it is left out of what the error is judged by.
func late(err error, limit time.Duration) error {
	var coded interface{ ErrorCode() string }
	isCoded, verdict := errors.As(err, &coded), failure.Examine(err)
	cutOff := verdict.Code == connClosed
	if cutOff && !isCoded {
		err = fmt.Errorf("%w: %s", context.DeadlineExceeded, err.Error())
	}
	err = fmt.Errorf("handler ran longer than %s: %w", limit, err)
	if isCoded || !cutOff && verdict.Class != failure.Unknown {
		return err
	}
	return &codedError{CodeHandlerTimeout, err}
}
