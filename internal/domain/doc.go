// Package domain holds the business: users, their rules and their events.
//
// It imports the standard library only. Functions take and return values, and leave transactions and time to their
// caller.
package domain
