package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

var (
	// ErrClosed is returned by calls on what is closed.
	ErrClosed = errors.New("closed")
	// ErrNotSent says that a message was held back behind an earlier one of its key that failed.
	ErrNotSent = errors.New("not sent: an earlier record failed")
	// ErrTimeout is in the error of a message that was not acknowledged within PublishTimeout.
	ErrTimeout = errors.New("publish timeout")
)

// PublishError says which messages of one call failed. Those that are not in Failed are acknowledged. The error of a
// message that waiting does not cure has a method Permanent that returns true: the record is too large or malformed,
// the topic's name is invalid. Everything else, an unknown topic included, may succeed later.
type PublishError struct {
	Topic  string
	Failed map[int]error // index in the call -> why
}

func (e *PublishError) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(e.Failed)))
	return fmt.Sprintf("publish to %s: %d messages failed, first %d: %v", e.Topic, len(e.Failed), first, e.Failed[first])
}

// FailedIndexes returns Failed; it lets a caller read the result without importing this package.
func (e *PublishError) FailedIndexes() map[int]error { return e.Failed }

// Unwrap returns the failures in the order of the call, for errors.Is.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, i := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[i])
	}
	return errs
}
