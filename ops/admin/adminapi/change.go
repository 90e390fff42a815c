package adminapi

import "example.com/twinbox/engine/audit"

// Change is the body of a request that changes something.
type Change interface {
	// Asked is who changes something, why, and whether it is a dry run.
	Asked() audit.Change
}

// Asked implements [Change].
func (r EditRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r DiscardRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ReplayRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r RepublishRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ReleaseRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ConfirmRestoreRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ConfirmPartitionsRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ConsumerRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r MailRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r CancelScheduledRequest) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

// Asked implements [Change].
func (r ImportDeadLettersParams) Asked() audit.Change { return asked(r.By, r.Reason, r.DryRun) }

func asked(by, reason string, dryRun bool) audit.Change {
	return audit.Change{By: by, Reason: reason, DryRun: dryRun}
}
