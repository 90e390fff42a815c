package inbox

import (
	"errors"

	"example.com/twinbox/internal/failure"
)

// Outcome is what became of one delivery of one event.
type Outcome string

// The outcomes. Each is counted in inbox_messages_total; all but Failed are final and acknowledged.
const (
	Applied   Outcome = "applied"   // new: the handler ran and its writes are committed
	Duplicate Outcome = "duplicate" // same id, same payload: skipped, and no error
	Conflict  Outcome = "conflict"  // same id, other payload: never applied; see ConflictMode
	Stale     Outcome = "stale"     // the key is at this version or beyond it: skipped
	Gap       Outcome = "gap"       // an earlier version of the key is missing: parked; see GapPolicy
	Parked    Outcome = "parked"    // an earlier event of the key is parked: parked behind it
	Expired   Outcome = "expired"   // older than the inbox remembers: dead-lettered, never applied blindly
	Ignored   Outcome = "ignored"   // a type that this consumer has no handler for: skipped, only its version counts
	Dead      Outcome = "dead"      // given up: the record is in the dead_letter table
	Failed    Outcome = "failed"    // nothing was committed; the delivery will be repeated
)

// ErrExpired comes with [Expired] from the calls that hand the event back to their caller: the id is from before the
// inbox's memory, so the inbox cannot tell whether it was processed.
var ErrExpired = errors.New("the event is older than the inbox remembers")

// ConflictMode says what to do when an id comes back with another payload, which breaks the contract of ids.
type ConflictMode string

const (
	// ConflictError dead-letters the second event. The default.
	ConflictError ConflictMode = "error"
	// ConflictWarn logs the second event and acknowledges it.
	ConflictWarn ConflictMode = "warn"
)

// Stable codes of the dead letters that this package itself decides. An error with a method ErrorCode() string, such
// as a [cloudevent.DecodeError] or a contract's, brings its own.
const (
	CodeConflict       = "id_conflict"
	CodePayload        = "payload_mismatch" // the data fits its schema but not the handler's type
	CodeHandlerFailed  = "handler_failed"
	CodeHandlerTimeout = "handler_timeout" // it ran longer than it may, in each attempt or the last
	CodeHandlerPanic   = "handler_panic"
	CodePublishes      = "handler_publishes"
	CodeTooOld         = "too_old"
	CodeGap            = "version_gap"     // an earlier version of its key is missing
	CodeJump           = "version_jump"    // it is more than [Config.MaxJump] above its key's version
	CodeNoVersion      = "missing_version" // it has none, and events of its key before it had one
	CodeParked         = "parked_behind"
	CodeProcessDied    = "process_died" // the process ended each time it tried
	CodeNoHandler      = "no_handler"   // of a replay's refusal: this build handles no events of its type
)

// Permanent marks a handler's error as final: the event is given up without another attempt.
func Permanent(err error) error { return failure.AsPermanent(err) }

// PermanentAs is [Permanent] with a stable code of the handler's own, under which its dead letters are listed.
func PermanentAs(code string, err error) error { return &codedError{code, Permanent(err)} }
