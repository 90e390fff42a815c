// Package outbox publishes events of committed PostgreSQL transactions: every one of them, at least once, those of one
// key in order, and never one of a transaction that did not commit.
//
//	outbox.go config.go check.go           what is configured, and what is refused
//	event.go add.go batch.go insert.go     what a transaction adds, and the statement that adds it
//	given.go                               ids that callers give: one id, one event
//	queue.go publisher.go                  the same along with other writes, or for who knows only Watermill
//	schema.go add_record.go                what a message is as an event, and records that are none
//	snapshot.go marks.go reader.go         which rows are to be published, and what is remembered of it
//	change.go                              how the cursor is changed, by whoever still leads and by nobody else
//	page.go headers.go                     a row made an event again
//	cursor.go rebase.go session.go         the stored state, another cluster's database, what a server must be like
//	restore.go                             a database that knows less than the broker
//	relay.go lease.go lead.go              who publishes
//	source.go drain.go ahead.go            a window's pages, read ahead of their sending
//	face.go send.go call.go settle.go      a call of Publish, what to do when it fails
//	recent.go                              what a broken session need not send again
//	parked.go flush.go forget.go           what cannot be published, tried again, and written down
//	release.go                             what an operator does about it
//	partition.go republish.go              the past
//	notify.go topics.go destination.go     other processes, the broker's topics, an outage
//	status.go tail.go metrics.go gauges.go health.go what can be seen from outside
//
// # The problem
//
// Rows get their positions in one order and are committed in another. A reader that remembers the last position loses
// the row with a lower one that is committed later. A reader that waits until no older transaction runs stalls behind
// anybody's transaction on the server, in any database. A reader that follows transaction ids publishes the later of
// two events of a key first, and so do readers that claim rows one by one. Each is reproduced in usual_ways_test.go;
// docs/adr/0002-outbox-snapshot-window.md has the figures.
//
// # The algorithm
//
// The cursor remembers a snapshot, done: everything visible in it is published. A round takes the present snapshot C
// and publishes the rows that are visible in C and not in done, in the order of their positions. These rows are its
// window. Then done is C. It waits for nobody: a transaction that is still running is simply in neither snapshot, and
// its rows are in the window that first sees it committed.
//
//	poll     C, H := pg_current_snapshot(), the sequence's head       one statement, no transaction id
//	page     rows above some position, visible in C, not in done     in the order of positions
//	store    win := C, win_pos := where the page began               before the first row is sent
//	(send)
//	advance  win_pos := last position taken                          after the broker has taken it
//	finish   done := win, and a landmark                             after the last page
//
// # Why nothing is lost, doubled or invented
//
// Visibility in a snapshot is a function of the stored transaction id and the snapshot alone, so "visible in C and not
// in done" names each committed row in exactly one of the windows done0-C0, C0-C1, C1-C2 ...: snapshots of one server
// only grow. Rows of transactions that roll back are never read by anybody. Savepoints do not matter: the id and the
// snapshot are the top transaction's. The window is stored before its first row is sent, so that whoever goes on after
// a crash goes on in the same window: it may send again what was taken since the last advance, and nothing else.
//
// Storing the window is also a barrier. Its commit reaches the disk after those of the writers it has seen, so that a
// server crash cannot take back an event that was sent, not even one of a writer with synchronous_commit = off, or one
// that is visible although its commit is not flushed yet.
//
// # Why the order of a key holds
//
// The writer locks the key's row in outbox_key, takes the next version from it and inserts, in one statement
// ([Outbox.Add] does nothing else). Let event 1 of a key be in transaction A and event 2 in B. B gets the lock after A
// has ended. So
// B's row takes its position after A's, and a snapshot that sees B sees A: A is in the same window with a lower
// position, or in an earlier window. Within a page the publisher keeps the order; of a key whose record fails, nothing
// more is sent before that record was taken (send.go).
//
// # Where to start looking
//
// The window's rows have to be found without looking at all the past. A landmark is a pair (x, h): h was read from the
// sequence, then x was taken as a transaction id. A transaction with an id above x took it after h was read. It takes
// its positions after its id, since xid stands before position in the table and defaults are evaluated in column order.
// So all its rows lie above h. Every finish makes a landmark of its own transaction's id and the window's head, which
// was read long before.
//
// A row that is visible in C and not in done belongs to a transaction that began after done was taken, so its id is at
// least xmax(done), or that was running then, so that its id is in done's list. For each of them the newest landmark
// with a smaller id says from where its rows can be; the least of these positions is where the scan starts. That is
// marks.go; landmarks that no later window can need are dropped: there are never many more than running transactions.
//
// What would break it is refused when the relay connects (session.go): another column order, a sequence with a cache,
// a standby, whose snapshots list no running transactions, a pooler that changes the session. And these are the traps
// of the statements themselves: the head must be read in the polling statement, since reading it after taking any
// transaction id of one's own makes landmarks that promise too much; "select last_value" reads a number that nextval is
// about to give out; a poll inside a transaction that has an id shows that id as finished.
//
// # Who publishes
//
// One relay leads: it holds the lease in the cursor row, on the database's clock. Every change of the cursor repeats
// the epoch, which a take-over raises, and the generation, which every change raises; who has lost either changes
// nothing. A call of Publish may take less time than the lease lasts, and is not made unless that much is left for
// sure. If a leader is stopped in the middle of a call and wakes up after its lease, its records arrive late and
// twice. They are still in order: both leaders send a key's records in the same order, each from its first unpublished
// one on, so any record is preceded by those before it, from the one or from the other.
//
// With the lease a leader takes an advisory lock of its epoch on its session. A follower that finds it free knows that
// the session has ended and does not wait for the lease: after kill -9 it leads within 750 ms. The process may
// live, without its session and with a call of Publish under way; the same argument holds for its records, and it sends
// nothing more. docs/adr/0014-a-lock-tells-of-a-leaders-death.md has the sequence of events.
//
// # What shows it
//
//	nothing lost, doubled, inverted     TestReaderOverRandomSchedules, TestChaos, TestUsualWay...
//	a restart anywhere                  TestRelayCrashesEverywhere, with the duplicates; TestRelayDiesAroundAnyStatement;
//	                                    TestReaderOverRandomRestores
//	the column order, the cache         TestOnAQuietServer, whose writers are stopped between two defaults
//	the barrier                         TestNothingPublishedIsUndoneByAServerCrash
//	stale leaders                       TestStoppedLeaderChangesNothing, TestAStale...
//	leaders that die                    TestAKilledLeaderIsReplacedBeforeItsLeaseEnds, TestARestartedRelay...
//	leaders that lose their session     TestALeaderWithoutItsSessionSendsNothingMore
//	broken sessions and connections     TestRelayOutlivesItsSessions, TestRelayOutlivesACutConnection
//	brokers that fail                   TestRelayOutlivesALongOutage, TestRelayWaitsForALatePublisher, TestRelayToKafka
//	keys that cannot be published       parked_test.go
//
// Longer campaigns of the random ones: make test-long.
//
// # What it does not do
//
// No exactly-once on the wire: a crash sends again what was taken since the last advance, and consumers skip by event
// id. How much that is has a limit: [RelayConfig.MaxUnrecorded] events (10,000), the page in the air included, and
// while a backlog is drained an advance every [RelayConfig.RecordEvery] (100 ms); at its end, and with small windows
// always, everything is recorded at once. A session that breaks costs no duplicates, since the process remembers,
// unless a follower takes over before the process has another.
//
// No order across keys. No protection against who writes to the table by hand: supplying xid or position, inserting
// into a partition, setval, or applying another server's changes into it.
package outbox
