// Package ledger is an example of a service: accounts that money comes to and leaves, with a balance to read.
//
// The write side (commands.go, open.go, move.go) holds no lock while it decides. It reads an account, applies a rule of
// package account, and stores the account and the event at the next version; of two commands that read the same
// version, the outbox lets one through. The read side (balance.go) is a versioned consumer of those same events, whose
// every step builds on the one before it: GET answers from it alone.
//
// app.go joins it all: what runs, and in which order it stops.
package ledger
