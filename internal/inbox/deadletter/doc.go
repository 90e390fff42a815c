// Package deadletter keeps the records that a consumer could not handle, until an operator has replayed or discarded
// them.
//
// The promise: a record that is acknowledged without having had its effect has exactly one row here, written in the
// transaction of that decision, and holds the record byte for byte. Only a replay or a discard settles it, and each
// leaves a row in the audit.
//
// While a dead letter waits it may hold its key: then the consumer parks the key's later events behind it. Package
// inbox writes and replays dead letters in its transaction. [Store] is what operators do about them.
//
// A transaction that settles a dead letter locks first its key and then the dead letter, as consumers do ([Lock],
// [LockKeys]), and releases the key ([ReleaseKeys]). So no event parks behind a settled one.
//
// Not promised: that every dead letter has a copy on the broker. The row counts.
package deadletter
