// Package failure classifies errors for consumers, relay, API and mail sender, in one table: give up, wait, or try
// a few times. table.go reads the table, the files beside it hold its rows. The packages pgerrors and kafkaerrors
// add the rows of their client libraries; code that uses such a library imports them.
package failure

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
