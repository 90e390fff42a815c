package producer

import "errors"

var (
	// ErrTimeout is in a [RecordError] whose record was not acknowledged within the publish timeout. The record may be
	// on the log, or may still be appended by a broker that has the request in hand; see the package documentation for
	// why sending it again keeps the order.
	ErrTimeout = errors.New("publish timeout")
	// ErrTooLarge is in a [RecordError] whose record exceeds [kafka.Config.MaxMessageBytes] or the topic's own limit.
	ErrTooLarge = errors.New("record too large")
)

// A RecordError says why one record was not acknowledged.
type RecordError struct {
	Err       error
	permanent bool
	unknown   bool
}

func (e *RecordError) Error() string { return "publish record: " + e.Err.Error() }

// Unwrap returns the cause: one of this package's errors or sarama's.
func (e *RecordError) Unwrap() error { return e.Err }

// Permanent reports whether the record will never be taken as it is.
func (e *RecordError) Permanent() bool { return e.permanent }

// OutcomeUnknown reports whether the record may be on the log although the broker did not acknowledge it.
func (e *RecordError) OutcomeUnknown() bool { return e.unknown }
