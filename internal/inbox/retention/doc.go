// Package retention decides how long an inbox remembers. It makes the inbox's table partitions, one per day, before
// they are needed, and drops those whose events cannot come again.
//
// It guarantees that the inbox refuses an event that it has forgotten: no event is applied twice. [Janitor] moves the
// horizon before it drops a day, and the inbox inserts no event from before the horizon.
//
// It also guarantees that no single reading of a clock decides. The database's clock, the process's clock or the
// producers' clocks may be wrong by any time, in either direction. A round of the janitor has these steps:
//
//  1. Read the database's clock and the process's clock.
//  2. Make a table partition for today and the next seven days by each clock, unless a partition covers the day. The
//     rows of that day move there from inbox_future, which takes the events of all other days.
//  3. End here if a topic can deliver an event for as long as the inbox remembers it, or if the broker does not
//     answer: see [Requirements].
//  4. Move the horizon to the earliest of three days, but never back: the retention before the database's clock, the
//     retention before the process's clock, and the start of the newest days that hold events. Of these days there is
//     one per day of the retention, and one more.
//  5. Drop the partitions that end before the horizon, eight at most. Drop a partition also if it is empty and both
//     clocks are past it: the inbox forgets no event with it.
//  6. Delete the rows before the horizon that have no day of their own, in bounded chunks. An id without a time goes
//     when both clocks had put its processing before the horizon.
//
// A clock that is ahead moves nothing, since the other clock holds the horizon. An event from the future moves nothing
// either: both clocks hold it. If both clocks jump ahead, days with newer events are missing, and the horizon moves one
// day for each new day that events arrive on. A clock that is behind keeps rows for longer. An idle system keeps its
// last rows.
//
// Not guaranteed: that a day is dropped on time. A drop locks the inbox, so it gives way to transactions that write to
// it, and the next round tries again. Waiting dead letters outlive the horizon; each stores whether its event was
// applied.
//
// The package knows the inbox by its tables alone (migrations/inbox).
package retention
