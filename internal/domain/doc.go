// Package domain holds the business: what a user is, what may happen to one, and the events that say it happened.
//
// It imports the standard library only. A rule does not know how it is stored, carried or served: functions take
// values, return values and the events they caused, and leave transactions and time to their caller.
package domain
