package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

var (
	// ErrClosed is returned by calls on a closed publisher.
	ErrClosed = errors.New("closed")
	// ErrNotSent is about a message after a failed one of its key.
	ErrNotSent = errors.New("not sent: an earlier record failed")
	// ErrTimeout is about a message without an acknowledgement within PublishTimeout.
	ErrTimeout = errors.New("publish timeout")
)

// PublishError lists the messages of a call that failed; the others are acknowledged. A failure that a retry cannot
// change, such as a too large record, has a method Permanent that returns true. An unknown topic is not permanent.
type PublishError struct {
	Topic  string
	Failed map[int]error // index in the call -> why
}

func (e *PublishError) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(e.Failed)))
	return fmt.Sprintf("publish to %s: %d messages failed, first %d: %v", e.Topic, len(e.Failed), first, e.Failed[first])
}

// FailedIndexes returns Failed, for callers that do not import this package.
func (e *PublishError) FailedIndexes() map[int]error { return e.Failed }

// Unwrap returns the failures in the order of the call.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, i := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[i])
	}
	return errs
}
