// Package retention decides how long an inbox remembers: it makes the inbox's partitions ahead of time and drops those
// whose events cannot come again.
//
// The promise: what the inbox forgets is refused from then on, never applied a second time. [Janitor] moves the horizon
// before it drops anything, and the inbox inserts nothing from before the horizon. Nothing is forgotten while an event
// may still be delivered again, or while that is not known: [Requirements] compares the retention with the topics'.
//
// Not promised: that a day is dropped on time. Dropping locks the inbox, so it gives way to transactions that write to
// it and is tried again in the next round. Waiting dead letters outlive the horizon; they remember by themselves
// whether their event was applied.
//
// It knows the inbox by its tables alone (migrations/inbox).
package retention
