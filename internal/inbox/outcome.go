package inbox

import (
	"cmp"
	"errors"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Outcome is what became of one delivery.
type Outcome string

// The outcomes, as in inbox_messages_total. All but Failed are final.
const (
	Applied   Outcome = "applied"   // the handler ran and its writes are committed
	Duplicate Outcome = "duplicate" // applied before, or a dead letter
	Conflict  Outcome = "conflict"  // the same id with another payload: dead letter, or a warning
	Stale     Outcome = "stale"     // the key has reached this version
	Gap       Outcome = "gap"       // an earlier version of the key is missing: parked
	Parked    Outcome = "parked"    // an earlier event of the key is a dead letter: parked behind it
	Expired   Outcome = "expired"   // older than the inbox remembers: dead letter
	Ignored   Outcome = "ignored"   // no handler for its type: only its version counts
	Dead      Outcome = "dead"      // given up: dead letter
	Failed    Outcome = "failed"    // nothing is committed
)

// ErrExpired means that the id is older than the inbox remembers: it may have been processed.
var ErrExpired = errors.New("the event is older than the inbox remembers")

// The stable codes of dead letters. An error with a method ErrorCode() string has its own.
const (
	CodeConflict       = "id_conflict"
	CodePayload        = "payload_mismatch"
	CodeHandlerFailed  = "handler_failed"
	CodeHandlerTimeout = "handler_timeout"
	CodeHandlerPanic   = "handler_panic"
	CodePublishes      = "handler_publishes"
	CodeTooOld         = "too_old"
	CodeGap            = "version_gap"
	CodeJump           = "version_jump" // see [Latest]
	CodeNoVersion      = "missing_version"
	CodeParked         = "parked_behind"
	CodeProcessDied    = "process_died" // the process ended at each attempt
)

// Permanent marks an error as final: no further attempt.
func Permanent(err error) error { return failure.AsPermanent(err) }

// PermanentAs is [Permanent] with its own code for the dead letter.
func PermanentAs(code string, err error) error { return &codedError{code, Permanent(err)} }

type codedError struct {
	code string
	err  error
}

func (e *codedError) Error() string     { return e.err.Error() }
func (e *codedError) Unwrap() error     { return e.err }
func (e *codedError) ErrorCode() string { return e.code }

func codeOf(err error) string { return cmp.Or(event.CodeOf(err), CodeHandlerFailed) }

// The delivery's own context is alive, so a cancellation is an unknown failure.
func classify(err error) failure.Class {
	if class := failure.Classify(err); class != failure.Cancelled {
		return class
	}
	return failure.Unknown
}
