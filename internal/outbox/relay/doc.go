// Package relay publishes the events that package outbox adds: every committed event at least once, the events of a
// key in order. docs/adr/0001-read-the-outbox-by-snapshot-window.md has the reasons, docs/engine.md the tests.
//
// # The files, as a leader meets them
//
//	relay.go       a process waits for the lock, leads, and begins again after an error
//	config.go      its settings, and what its publisher's errors may be
//	session.go     the session, its lock, and who hears of commits
//	check.go       what its server must have
//	lead.go        a leader's rounds: round has the steps
//	cursor.go      in them: the window, its pages, and the row that has them
//	snapshot.go    in them: snapshots and landmarks
//	partitions.go  in them: table partitions
//	scheduled.go   in them: events that are due
//	parked.go      in them: keys that are parked, and their held rows
//	ends.go        in them: where each partition of the log ends, and will end
//	publish.go     in them: a page is sent until each record is taken, or its key parked
//	call.go        in them: one call of the publisher
//	heal.go        what went back is repaired
//	look.go        in it: the log is read
//	refuse.go      in it: an operator has to confirm
//	pass.go        in it: events are sent again
//	pause.go       operators: the pause
//	release.go     operators: parked keys
//	lost.go        operators: lost events, and refusals
//	republish.go   operators: events that are published again
//	status.go      operators: what waits
//	metrics.go     counters and times
//
// # A round
//
// A transaction takes its id and its rows' positions before it commits, and commits follow neither order. So the row
// outbox_cursor has a snapshot, done: every row that is visible in it is published. The rows that are visible in the
// present snapshot and not in done are the next window. A running transaction's rows belong to a later window.
//
// The leader repeats these steps (lead.go), each in autocommit on its one session:
//
//  1. Poll: read the present snapshot C and the sequence's head H in one statement without a transaction id.
//  2. Pick the window: the open one, unless it is published to its end; else the rows in C and not in the one before.
//  3. Read a page: the window's next rows by position, up to 1,000 rows or 8 MiB.
//  4. Store: win := C, win_pos := where the page begins. If another window was open, done := that window. The same
//     update adds a landmark, repeats the epoch, and reports a pause.
//  5. Publish the page. A record that fails is sent again, or its key is parked.
//  6. Continue with step 1. The store of the next page records this one; a window at rest is closed after 25 ms.
//
// Before step 2 the leader adds scheduled events that are due, and sends held rows of parked keys.
//
// # Each row is in one window
//
// Snapshots of one server only grow, so each committed row is in exactly one of the windows done0-C0, C0-C1, C1-C2.
// Rolled back rows are in none. Savepoints do not matter: id and snapshot are those of the top transaction.
//
// A page is stored before it is sent, so a successor sends that page again, and no other. The store's commit reaches
// the disk after the commits of the page's writers, even with synchronous_commit = off: a crash of the server takes
// back no event that was sent.
//
// # No key is inverted
//
// A writer locks the key's row in outbox_key, takes the next version and inserts, in one statement. The writer of
// event 2 gets the lock after the writer of event 1 has ended. So event 2 has the higher position, and each snapshot
// that sees it sees event 1. Within a page the publisher sends no record behind a failed one of its key.
//
// # Where the scan starts
//
// A landmark is a pair (x, h): the head h was read, then the transaction id x was taken. The rows of a transaction
// with a higher id lie above h: the column xid precedes position, and PostgreSQL evaluates defaults in column order.
//
// A row of the window belongs to a transaction that was running in the snapshot before, or began after it. The newest
// landmark with a lower id bounds its position. The lowest of these bounds is the start (snapshot.go).
//
// A sequence that was set back puts rows below all landmarks: the first poll that finds a lower head forgets them,
// repairs the sequence, and scans the whole table. In another cluster the first leader gives rows new transaction ids.
//
// # What went back
//
// With a publisher that is a [Log], the relay finds events that the database lost, and records that the log lost
// (docs/adr/0021-what-went-back-is-healed.md). Pages need only ends.go: the update that stores a page also stores
// where each partition of the log will end, and the acknowledged offsets are compared with that. heal.go begins where
// an end is not sure: a look reads the log (look.go), may refuse (refuse.go), and passes send the rows and lost events
// of an ill partition again (pass.go).
//
// # Who leads
//
// The leader's session holds an advisory lock, and idle_session_timeout ends the session of one that hangs. Each
// leadership raises the epoch, and every change of the cursor repeats it. A former leader's last call may land late,
// and doubled, but in order (docs/adr/0003-one-relay-leads.md).
//
// # Not guaranteed
//
// A crash sends one page again ([Config.BatchSize]), and consumers skip by event id. There is no order across keys.
//
// The relay cannot see manual writes: rows with their own xid or position, rows in a partition, another server's
// changes applied to the table.
//
// A sequence that was set back and has grown past the old head again is not noticed: its rows may be published out of
// their key's order. After a restore that lost the sequence's value, a relay must lead before writers start.
package relay
