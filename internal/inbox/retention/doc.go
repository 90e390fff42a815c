// Package retention decides how long an inbox remembers. It creates the inbox's table partitions, one per day, and
// drops those whose events cannot come again.
//
// It guarantees that the inbox refuses an event that it has forgotten: [Janitor] moves the horizon before it drops a
// day, and the inbox inserts no event from before the horizon. It also guarantees that no single clock decides: the
// database's, the process's or the producers' may be wrong by any time. A round has these steps:
//
//  1. Read the database's clock and the process's clock.
//  2. Create a table partition for today and the next seven days by each clock. The rows of that day move there from
//     inbox_future, which takes the events of all other days.
//  3. End here if a topic can deliver an event for as long as the inbox remembers it, or if the broker does not
//     answer: see [Requirements].
//  4. Move the horizon to the earliest of three days, but never back: the retention before the database's clock, the
//     retention before the process's clock, and the start of the newest days that hold events. Of these days there is
//     one per day of the retention, and one more.
//  5. Drop the partitions that end before the horizon, eight at most, and empty ones that both clocks are past.
//  6. Delete the rows before the horizon that have no day of their own, in bounded chunks. An id without a time goes
//     when both clocks had put its processing before the horizon.
//
// If both clocks jump ahead, the horizon moves one day for each new day with events. A slow clock keeps rows for
// longer. An idle system keeps its last rows.
//
// Not guaranteed: that a day is dropped on time. A drop gives way to transactions that write to the inbox. Waiting dead
// letters outlive the horizon.
package retention
