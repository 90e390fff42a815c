// Package failure sorts errors by what to do about them: the one table that consumers, relay, API and mail sender
// share. table.go says how it is read, the files beside it hold its rows. What a client library's errors mean is told
// by a package that knows it (pgerrors, kafkaerrors), which who uses the library imports.
package failure

// Class says what to do about an error.
type Class string

const (
	// Permanent errors stay what they are however often one tries: bad bytes, a broken rule, a refused row.
	Permanent Class = "permanent"
	// Transient errors are the surroundings' fault and end with them: wait and try again, for as long as it takes.
	// Nothing is ever dead-lettered for one.
	Transient Class = "transient"
	// Unknown errors may be either: try a bounded number of times, then give up on the event.
	Unknown Class = "unknown"
	// Cancelled is no verdict on the event at all: the process is stopping or has lost the partition.
	Cancelled Class = "cancelled"
)

// mark is an author's own word about an error.
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
