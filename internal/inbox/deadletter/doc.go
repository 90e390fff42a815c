// Package deadletter stores the records that a consumer could not handle, until an operator replays or discards them.
//
// It guarantees that a record which is acknowledged without its effect has exactly one row, written in the transaction
// of that decision, with the record's bytes. Only a replay or a discard settles it, and the audit has both. Package
// inbox writes and replays dead letters. Operators use [Store].
//
// A waiting dead letter may hold its key: the consumer then parks the key's later events. A transaction that settles a
// dead letter locks first its key and then the dead letter ([Lock]), and releases the key ([ReleaseKeys]). So no event
// parks behind a settled dead letter.
//
// Not guaranteed: that every dead letter has a copy on the broker.
package deadletter
