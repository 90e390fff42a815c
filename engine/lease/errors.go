package lease

import "fmt"

// StaleError says that a lease has ended, or that another process has claimed the row. The step changed nothing.
type StaleError struct {
	Handler, EventID string
	Step             string // what was tried
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("stale_lease: %s: the lease of %s on event %s has been lost", e.Step, e.Handler, e.EventID)
}

// undoneError marks a failure after which the effect has certainly not happened.
type undoneError struct{ err error }

func (e *undoneError) Error() string { return e.err.Error() }
func (e *undoneError) Unwrap() error { return e.err }

// Undone marks an error that came after [Claim.Begin] as one after which the effect has certainly not happened: the
// other side said no, or cannot have heard. Without the mark such an error leaves the outcome uncertain. It returns nil
// for nil.
func Undone(err error) error {
	if err == nil {
		return nil
	}
	return &undoneError{err}
}
