// Package lease carries out effects outside SQL: a mail, a payment, a call to another system's API.
//
// The transaction that records an event adds a row with [Intent]. A worker of a [Runner] claims the row, prepares the
// effect, and calls [Claim.Begin] right before the step that cannot be taken back.
//
//	state       means                            next state
//	pending     waits for its next attempt       claimed
//	claimed     a worker prepares the effect     submitting; failed, skipped; pending, to be tried again
//	submitting  the effect may have happened     done, uncertain; failed, skipped, pending if it certainly has not
//	done        the effect has happened          none
//	failed      the effect will not happen       pending or skipped, by an operator ([Reopen], [SkipFailed])
//	skipped     it must not happen ([Skip])      pending, by an operator ([Reopen])
//	uncertain   nobody knows                     pending or done, by an operator ([Reopen], [Settle])
//
// # Guarantees
//
// One worker at a time holds the lease of a row. A statement with the token of an older claim changes no row and
// returns [ErrStale]. All times are the database's.
//
// Heartbeats renew a lease. [Runner.Sweep] ends the leases of workers that vanished:
//
//   - A row in claimed becomes pending: its effect has not begun. It fails when its attempts are used up.
//   - A row in submitting is in doubt. Under [Park], the default, it becomes uncertain: the effect happens at most once
//     per intent. Under [Resend] it becomes pending while attempts are left: the effect happens at least once, and at
//     most once more than the row's number of doubts.
//
// # Not guaranteed
//
// A process that is stopped between Begin and the effect for longer than its lease has its effect when it wakes up.
// Give the effect a deadline on the connection, shorter than the lease. Effects have no order.
package lease
