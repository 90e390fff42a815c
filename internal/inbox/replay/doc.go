// Package replay takes up what an inbox has put aside: dead letters that an operator replays, and parked events whose
// gap has closed.
//
// The promise: each event has its effect at most once and in its key's order, however many replays and consumers run at
// once and wherever one is killed. Each dead letter has one transaction, [inbox.Inbox.Retake], in which its row is
// locked, its id and its version are taken, the handler runs and the dead letter is settled with its audit row.
//
//   - [Replayer.Replay] is an operator's: a filter picks the dead letters, a key stops at its first failure or refusal.
//   - [Replayer.Resume] follows each delivery that closes a gap, before the partition's next event.
//   - [Replayer.ResumeGaps] runs beside the consumer and finds what was left: a process died in between, or a discard
//     closed the gap. Such an attempt is counted before it begins: no operator watches over an event that ends its
//     process.
//
// Not promised: that a replay goes on after an outage of the database. It ends with an error, counts it against no
// dead letter, and may be called again.
package replay
