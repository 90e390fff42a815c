// Package deadletter keeps the records that a consumer could not handle, until an operator has replayed or discarded
// them.
//
// The promise: a record that is acknowledged without having had its effect has exactly one row here, written in the
// transaction of that decision, and holds the record byte for byte. Only a replay or a discard settles it, and each of
// them leaves a row in the audit.
//
// A dead letter is waiting, then replayed or discarded. While it waits it may hold its key: then the consumer parks the
// key's later events behind it, so that they are handled in their order when the reason is gone. Package inbox writes
// dead letters and replays them, because both are done in its transaction. [Store] is what operators do about them.
//
// A transaction that settles a dead letter locks first its key and then the dead letter, as consumers do ([Lock],
// [LockKeys]), and releases the key ([ReleaseKeys]). So no event parks behind a dead letter that is settled.
//
// Not promised: that every dead letter has a copy on the broker. The row counts; the copy is for other tools.
package deadletter
