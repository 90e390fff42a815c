// Package outbox adds events in the transaction of a change. If it commits, each of them is published at least once,
// those of one key in order; if it rolls back, none is.
//
// This package is the write side. Its statement locks a key's row, takes the key's next number out of it and inserts:
// the order of a key rests on that, see package window.
//
//	window    which committed rows may be published, in which order, without gaps
//	relay     publishes them: who leads, what is tried again, what is set aside
//	restore   a database that was set back and has forgotten what it has published
//	operate   what operators read and do
package outbox
