package adminapi

// Change is the body of a request that changes something.
type Change interface {
	// Asked is the operator's name and reason, and whether it is a dry run.
	Asked() (by, reason string, dryRun bool)
}

// Asked implements [Change].
func (r EditRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r DiscardRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r ReplayRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r RepublishRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r ReleaseRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r ConfirmRestoreRequest) Asked() (by, reason string, dryRun bool) {
	return r.By, r.Reason, r.DryRun
}

// Asked implements [Change].
func (r ConfirmPartitionsRequest) Asked() (by, reason string, dryRun bool) {
	return r.By, r.Reason, r.DryRun
}

// Asked implements [Change].
func (r ConsumerRequest) Asked() (by, reason string, dryRun bool) {
	return r.By, r.Reason, r.DryRun
}

// Asked implements [Change].
func (r MailRequest) Asked() (by, reason string, dryRun bool) { return r.By, r.Reason, r.DryRun }

// Asked implements [Change].
func (r CancelScheduledRequest) Asked() (by, reason string, dryRun bool) {
	return r.By, r.Reason, r.DryRun
}
