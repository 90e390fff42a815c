// Package deadletter stores the records that a consumer could not handle, until an operator replays or discards them.
//
// It guarantees that a record which is acknowledged without its effect has exactly one row, written in the transaction
// of that decision. The row has the record byte for byte. Only a replay or a discard settles it, and the audit has
// both.
//
// A waiting dead letter may hold its key: the consumer then parks the key's later events. Package inbox writes and
// replays dead letters, in its own transaction. Operators use [Store].
//
// A transaction that settles a dead letter locks first its key and then the dead letter, as consumers do ([Lock],
// [LockKeys]), and releases the key ([ReleaseKeys]). So no event parks behind a settled dead letter.
//
// Not guaranteed: that every dead letter has a copy on the broker. The row counts.
package deadletter
