// Package lease carries out effects outside SQL: a mail, a payment, a call to another system's API.
//
// The transaction that records an event adds a row, the intent ([Add]). A worker of a [Runner] claims the row, prepares
// the effect, and calls [Claim.Begin] right before the step that cannot be taken back.
//
//	state       means                            next state
//	pending     waits for its next attempt       claimed
//	claimed     a worker prepares the effect     submitting; failed, skipped; pending, to be tried again
//	submitting  the effect may have happened     done, uncertain; failed, skipped, pending if it certainly has not
//	done        the effect has happened          none
//	failed      the effect will not happen       pending, by an operator ([Reopen])
//	skipped     it must not happen ([Skip])      pending, by an operator ([Reopen])
//	uncertain   nobody knows                     pending or done, by an operator ([Reopen], [Settle])
//
// # Guarantees
//
// One worker at a time holds the lease of a row. Each claim has a new token, and each later statement repeats it. With
// an old token a statement changes no row and returns [ErrStale]. All times are the database's clock_timestamp. The
// clock of a process measures only how long its own call of Begin took.
//
// A worker renews its lease with heartbeats, so an effect may take longer than its lease. [Runner.Sweep] ends the
// leases of workers that vanished:
//
//   - A row in claimed is safe to retry and becomes pending. Its effect has not begun. When the row's attempts are used
//     up, it fails: a row that ends each process that claims it is not tried forever.
//   - A row in submitting is in doubt. Under the policy [Park], the default, it becomes uncertain and waits for an
//     operator: the effect happens at most once per intent. Under [Resend] it becomes pending while attempts are left:
//     the effect happens at least once unless it is refused for good, and at most once more than the row's number of
//     doubts.
//
// Begin needs a lease that has not ended, renews it, and fails when less of it is left than the effect may take. A
// process that was stopped for longer than its lease therefore begins no effect.
//
// # Not guaranteed
//
// A row cannot stop an effect outside. A process that is stopped between Begin and the effect for longer than its lease
// has its effect when it wakes up. Under [Resend] a second attempt may have happened by then, and the row has counted a
// doubt. Give the effect a deadline on the connection, shorter than the lease.
//
// Effects have no order.
//
// Rows that are done or skipped stay for [Settings].Retention; without a retention they stay forever.
package lease
