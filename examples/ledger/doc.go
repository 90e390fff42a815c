// Package ledger is an example of a service: accounts with credits, debits and a balance to read.
//
// The write side (commands.go, open.go, move.go) holds no lock while it decides. It reads an account, applies a rule of
// package account, and stores the account and the event at the next version. Of two commands that read the same
// version, the outbox lets one through. The read side (balance.go) consumes the same events in the order of their
// versions. GET answers from it alone. app.go joins both.
package ledger
