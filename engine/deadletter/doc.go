// Package deadletter keeps the records that a consumer could not handle, until an operator has replayed or discarded
// them.
//
// The promise: a record that is acknowledged without having had its effect has exactly one row here, written in the
// transaction of that decision, and holds the record byte for byte. Nothing but a replay or a discard settles it, and
// each such action leaves a row in the audit trail.
//
// A dead letter is waiting, then replayed or discarded. While it waits it may hold its key: then the consumer parks the
// key's later events behind it, so that they are handled in their order when the reason is gone. Package inbox writes
// dead letters and replays them, because both are done in its transaction; package operate has what operators do about
// them.
//
// What is not promised: that the copy on the broker is complete. The row is the truth, the copy is for other tools.
package deadletter
