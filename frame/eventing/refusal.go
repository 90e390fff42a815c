package eventing

import (
	"errors"

	"example.com/twinbox/engine/inbox/retention"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/frame/service"
)

// refusal is an error that comes again with every start, until an operator changes a setting: synchronous_commit, the
// number of a topic's partitions, a retention that is too short. Outbox and inbox refuse to work on that, since events
// would be lost or repeated; what their refusal means for the process is said here.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// ExitCode is that of a wrong configuration: starting again will not help.
func (refusal) ExitCode() int { return service.ExitUsage }

// refused finds the refusals among the errors with which a service ends.
func refused(err error) error {
	if _, found := errors.AsType[*outbox.CheckError](err); found {
		return refusal{err}
	}
	if wrong, found := errors.AsType[*retention.RequirementError](err); found && wrong.Known() {
		return refusal{err}
	}
	return err
}
