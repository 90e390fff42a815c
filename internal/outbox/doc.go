// Package outbox adds events in the transaction of a change. After a commit each event is published at least once,
// those of one key in order; after a rollback no event is.
//
// This package is the write side: a statement locks the row of a key, takes the key's next number out of it, and
// inserts the event. Package relay publishes the events.
package outbox
