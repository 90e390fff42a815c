// Package domain holds the business: users, their rules and their events.
//
// It imports the standard library only. Transactions and time are the caller's.
package domain
