package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/engine/failure"
)

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
