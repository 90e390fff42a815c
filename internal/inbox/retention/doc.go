// Package retention decides how long an inbox remembers: it makes the inbox's partitions ahead of time and drops those
// whose events cannot come again.
//
// The promise: an event that the inbox has forgotten is refused from then on, never applied a second time. [Janitor]
// moves the horizon before it drops anything, and the inbox inserts nothing from before the horizon. The janitor drops
// nothing while an event may still be delivered again, or while that is unknown: [Requirements] compares the retention
// with the topics'.
//
// Not promised: that a day is dropped on time. Dropping locks the inbox, so it gives way to transactions that write to
// it and is tried again in the next round. Waiting dead letters outlive the horizon; each keeps whether its event was
// applied.
//
// It knows the inbox by its tables alone (migrations/inbox).
package retention
