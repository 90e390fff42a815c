// Package failure sorts errors: give up, wait for an outage to end, or try a few times. It knows the errors of
// contexts, the network, mail servers and PostgreSQL. For other clients see [Mark].
package failure

import "slices"

// Class is what to do about an error.
type Class string

const (
	// Permanent errors return with every attempt: bad bytes, a broken rule, a refused row.
	Permanent Class = "permanent"
	// Transient errors end with an outage: try again without limit.
	Transient Class = "transient"
	// Unknown errors may be either: try a bounded number of times.
	Unknown Class = "unknown"
	// Cancelled errors mean that the process stops, or lost the topic-partition.
	Cancelled Class = "cancelled"
)

// Verdict is a class, with a stable code for logs, such as sql_40001, smtp_550 or [CodeUnknown].
type Verdict struct {
	Class Class
	Code  string
}

// CodeUnknown is the code of an unknown error.
const CodeUnknown = "unknown"

var unknownError = Verdict{Unknown, CodeUnknown}

type mark struct {
	err     error
	verdict Verdict
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// Permanent is for callers that do not know this package.
func (m *mark) Permanent() bool { return m.verdict.Class == Permanent }

// AsPermanent marks err as final. It returns nil for nil.
func AsPermanent(err error) error { return Mark(err, Verdict{Permanent, "marked_permanent"}) }

// AsTransient marks err as an outage. It returns nil for nil.
func AsTransient(err error) error { return Mark(err, Verdict{Transient, "marked_transient"}) }

// Mark gives err a verdict. It returns nil for nil.
func Mark(err error, verdict Verdict) error {
	if err == nil {
		return nil
	}
	return &mark{err, verdict}
}

// Classify returns the class of [Examine].
func Classify(err error) Class { return Examine(err).Class }

// Examine returns the verdict on err; [Unknown] by default. Do not pass nil.
//
// The outermost known error or mark decides. Of joined errors the first class of cancelled, transient, permanent,
// unknown decides, so an outage makes no dead letter. A deadline is Unknown: a handler may always be late.
func Examine(err error) Verdict {
	for at := err; at != nil; {
		if verdict, known := examineOne(at); known {
			return verdict
		}
		switch wrapper := at.(type) { //nolint:errorlint // the walk itself
		case interface{ Unwrap() error }:
			at = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			return examineAll(wrapper.Unwrap())
		default:
			at = nil
		}
	}
	if isUnsent(err) {
		return network
	}
	return unknownError
}

var precedence = []Class{Cancelled, Transient, Permanent, Unknown}

// Of unknown errors it returns one that has a code.
func examineAll(joined []error) Verdict {
	best := unknownError
	for _, err := range joined {
		if err == nil {
			continue
		}
		verdict := Examine(err)
		comesFirst := slices.Index(precedence, verdict.Class) < slices.Index(precedence, best.Class)
		if comesFirst || best == unknownError {
			best = verdict
		}
	}
	return best
}
