// Package window reads the committed rows of the outbox that are to be published next, in order, and records progress.
// It does not publish.
//
// Invariant: every committed row is in exactly one window, and of two rows of a key the one with the lower version is
// in the earlier window, or before the other in the same one. It holds for every order of commits, and whenever a
// reader ends.
//
// # The problem
//
// Rows get their positions in one order and are committed in another. A reader that remembers the last position loses
// the row with a lower one that is committed later. A reader that waits until no older transaction runs stalls behind
// every transaction on the server, in any database. A reader that follows transaction ids publishes the later of two
// events of a key first, and so do readers that lock single rows and skip locked ones. Each is reproduced in
// usual_ways_test.go; docs/adr/0001-read-the-outbox-by-snapshot-window.md has the figures.
//
// # The algorithm
//
// The cursor remembers a snapshot, done: everything visible in it is published. A round takes the present snapshot C
// and publishes the rows that are visible in C and not in done, in the order of their positions. These rows are its
// window. Then done is C. It waits for no transaction: one that is still running is simply in neither snapshot, and
// its rows are in the window that first sees it committed.
//
//	poll     C, H := pg_current_snapshot(), the sequence's head       one statement, no transaction id
//	page     rows above some position, visible in C, not in done     in the order of positions
//	store    win := C, win_pos := where the page began               before the first row is sent
//	(send)
//	advance  win_pos := last position taken                          after the broker has taken it
//	finish   done := win, and a landmark                             after the last page
//
// While rows keep coming, the finish of a window and the store of the next are one statement: win becomes done and the
// new C becomes win (docs/adr/0001-read-the-outbox-by-snapshot-window.md).
//
// # Why nothing is lost, doubled or invented
//
// Visibility in a snapshot is a function of the stored transaction id and the snapshot alone, so "visible in C and not
// in done" names each committed row in exactly one of the windows done0-C0, C0-C1, C1-C2 ...: snapshots of one server
// only grow. Rows of transactions that roll back are in none. Savepoints do not matter: the id and the snapshot are the
// top transaction's. The window is stored before its first row is sent, so that a successor after a crash goes on in
// the same window: it may send again what was taken since the last advance, and nothing else.
//
// Storing the window is also a barrier. Its commit reaches the disk after those of the writers it has seen, so that a
// server crash cannot take back an event that was sent, not even one of a writer with synchronous_commit = off, or one
// that is visible although its commit is not flushed yet.
//
// # Why the order of a key holds
//
// The writer locks the key's row in outbox_key, takes the next version from it and inserts, in one statement (package
// outbox does nothing else). Let event 1 of a key be in transaction A and event 2 in B. B gets the lock after A has
// ended. So B's row takes its position after A's, and a snapshot that sees B sees A: A is in the same window with a
// lower position, or in an earlier window. Within a page the publisher keeps the order; of a key whose record fails,
// nothing more is sent before that record was taken (package relay).
//
// # Where the scan starts
//
// The window's rows have to be found without reading all the past. A landmark is a pair (x, h): h was read from the
// sequence, then x was taken as a transaction id. A transaction with an id above x took it after h was read. It takes
// its positions after its id, since xid stands before position in the table and defaults are evaluated in column order.
// So all its rows lie above h. Every finish makes a landmark of its own transaction's id and the window's head, which
// was read long before; of the next window's head if it stores that too.
//
// A row that is visible in C and not in done belongs to a transaction that began after done was taken, so its id is at
// least xmax(done), or that was running then, so that its id is in done's list. For each of them the newest landmark
// with a smaller id says from where its rows can be; the least of these positions is where the scan starts. That is
// [landmarks]; those that no later window can need are dropped: there are never many more than running transactions.
//
// What would break it is refused when the relay connects (relay/session.go): another column order, a sequence with a
// cache, a standby, whose snapshots list no running transactions, a pooler that changes the session. And these are the
// traps of the statements themselves: the head must be read in the polling statement, since reading it after taking any
// transaction id of one's own makes landmarks that promise too much; "select last_value" reads a number that nextval is
// about to give out; a poll inside a transaction that has an id shows that id as finished.
//
// # What shows it
//
//	nothing lost, doubled, inverted     TestReaderOverRandomSchedules, TestUsualWay...
//	a restart, a restore anywhere       TestReaderGoesOnInsideAWindow, TestReaderOverRandomRestores
//	the column order, the cache         TestOnAQuietServer, whose writers are stopped between two defaults
//	stale readers                       TestAStaleReaderChangesNothing
//	landmarks                           TestKeptLandmarksAnswerAllQuestions
//
// The barrier, crashes around every statement and all of it together: package relay. Longer campaigns of the random
// ones: make test-long.
//
// # What it does not do
//
// No protection against writes to the table by hand: supplying xid or position, inserting into a partition, setval, or
// applying another server's changes into it.
package window
