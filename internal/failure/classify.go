// Package failure classifies errors for consumers, relay, API and mail sender, in one table: give up, wait, or try
// a few times. table.go holds the table, codes.go names the errors. The packages pgerrors and kafkaerrors
// add the rows of their client libraries; code that uses such a library imports them.
package failure

import (
	"context"
	"errors"
	"slices"
)

// Class says what to do about an error.
type Class string

const (
	// Permanent errors come again with every attempt: bad bytes, a broken rule, a refused row.
	Permanent Class = "permanent"
	// Transient errors come from an outage and end with it: wait and try again, for as long as it takes. They never
	// make a dead letter.
	Transient Class = "transient"
	// Unknown errors may be either: try a bounded number of times, then give up on the event.
	Unknown Class = "unknown"
	// Cancelled says nothing about the event: the process is stopping or has lost the topic-partition.
	Cancelled Class = "cancelled"
)

// mark is a caller's classification of an error.
type mark struct {
	err   error
	class Class
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// Permanent is for callers that do not know this package, such as a relay.
func (m *mark) Permanent() bool { return m.class == Permanent }

// AsPermanent marks err as final: consumer, relay and sender do not try again. It returns nil for nil.
func AsPermanent(err error) error { return marked(err, Permanent) }

// AsTransient marks err as one that passes by itself: consumer, relay and sender try again. It returns nil for nil.
func AsTransient(err error) error { return marked(err, Transient) }

func marked(err error, class Class) error {
	if err == nil {
		return nil
	}
	return &mark{err, class}
}

// A Verdict is what is known of an error: its class, and a code for logs and metrics that stays the same from release
// to release: sql_40001, kafka_6, smtp_550, net_ECONNREFUSED, marked_permanent, or CodeUnknown.
type Verdict struct {
	Class Class
	Code  string
}

// CodeUnknown is the code of an error that no row of the table knows.
const CodeUnknown = "unknown"

var noRow = Verdict{Unknown, CodeUnknown}

// Classify is the class of [Examine].
func Classify(err error) Class { return Examine(err).Class }

// Examine sorts err. An error that no row knows is [Unknown]; nil is not an error and must not be passed.
//
// The outermost error with a row or a mark decides, so a caller that marks an error overrides its cause. Of several
// errors joined each is sorted by itself, and the answer is the first of: cancelled, transient, permanent, known to
// be unknown. So a refused row whose rollback met a lost connection comes again, and is refused again then: nothing
// is dead-lettered as long as any part of what happened may have been the surroundings' fault.
//
// A deadline is not a cancellation: it is Unknown, because an event whose handler always runs out of time must reach
// the dead letters in the end. Only where it ended an attempt to connect it is Transient.
func Examine(err error) Verdict {
	for at := err; at != nil; {
		if found, known := examineNode(at); known {
			return found
		}
		switch wrapper := at.(type) { //nolint:errorlint // the walk itself
		case interface{ Unwrap() error }:
			at = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			return strongest(wrapper.Unwrap())
		default:
			at = nil
		}
	}
	for _, l := range libraries {
		if l.Unsent == nil {
			continue
		}
		if found, known := look(l.Unsent(err)); known {
			return found
		}
	}
	return noRow
}

// examineNode looks at one error of a chain and at nothing below it, except where what is below gives a better code.
func examineNode(err error) (Verdict, bool) {
	switch known := err.(type) { //nolint:errorlint // Examine unwraps
	case *mark:
		return look("marked_" + string(known.class))
	case interface{ Permanent() bool }:
		if known.Permanent() {
			return look("says_permanent")
		}
	case interface{ OutcomeUnknown() bool }:
		if known.OutcomeUnknown() {
			return look("outcome_unknown")
		}
	}
	for sentinel, code := range sentinels {
		if err == sentinel { //nolint:errorlint // Examine unwraps
			return look(code)
		}
	}
	for _, l := range libraries {
		found, known := look(l.Codes(err)...)
		if !known {
			continue
		}
		if !slices.Contains(l.Connecting, found.Code) {
			return found, true
		}
		// Only the connection can have caused it. What is inside gives the code if it is as transient, and the class only if
		// it is a cancellation.
		inside := errors.Unwrap(err)
		if errors.Is(inside, context.Canceled) { // package net has a cancellation of its own
			return look("context_canceled")
		}
		if inside != nil {
			if v := Examine(inside); v.Class == Transient {
				return v, true
			}
		}
		return found, true
	}
	return Verdict{}, false
}

// precedence is that of joined errors: what lets the event come again goes before what gives it up.
var precedence = []Class{Cancelled, Transient, Permanent, Unknown}

func strongest(parts []error) Verdict {
	best, rank := noRow, len(precedence)
	for _, part := range parts {
		if part == nil {
			continue
		}
		v := Examine(part)
		if at := slices.Index(precedence, v.Class); at < rank || at == rank && best.Code == CodeUnknown {
			best, rank = v, at
		}
	}
	return best
}
