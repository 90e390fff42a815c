// Package lease carries out effects outside SQL: a mail, a payment, a call to another system's API.
//
//	leases.go     the intent, a row in the transaction that records the event; what is done to many rows: they are
//	              claimed, kept by heartbeats, swept when their claimant has vanished, purged when they are old
//	claim.go      who has a row, and what only they may do with it
//	runner.go     workers that carry effects out, and how an attempt ends
//
// The row goes
//
//	pending -> claimed -> submitting -> done | failed | skipped | uncertain
//
// and back to pending from claimed and submitting when the attempt certainly had no effect. [Claim.Begin] marks it
// submitting, in a commit of its own, right before the irreversible step.
//
// # Guarantees
//
// In the database one process at a time holds a row's lease: every claim has a new token, every statement that moves a
// claimed row on repeats it, and one with an old token changes nothing and gets [ErrStale]. All decisions are made
// on the database's clock (clock_timestamp, not the transaction's start); no process's clock counts.
//
// When a lease ends before Begin, the next claim takes the row over: the effect has not begun. Its row is claimed
// alone, because it may be what ended the claimant, and failed when its attempts are used up. One that ends after it is
// uncertain, because the effect may have happened. Under the policy "park" it stays so until an operator decides: the
// effect happens at most once per intent. Under "resend" it is tried again: it happens at least once, unless it is
// refused for good, and at most once more than the row's count of doubts.
//
// Begin needs a lease that has not ended, renews it, and fails when by the local (monotonic) clock less of it is left
// than the effect may take. So a process that is stopped and woken up after its lease begins no effect.
//
// # Not guaranteed
//
// A row cannot fence an effect outside: a process that is stopped for longer than its lease between the return of Begin
// and the effect still has its effect when it wakes up. Under park that is the only attempt there is. Under resend
// there may be a second one beside it; the row's doubts count it. Give the effect a deadline shorter than the lease, on
// the connection itself: then only packets under way remain.
//
// There is no order between intents, but one in order ([IntentInOrder]) is skipped when a later one of its key has
// begun. Rows that are done or skipped stay for [Settings].Retention; without one, for ever.
package lease
