// Package inbox makes the effect of an event happen once, however often the event is delivered.
//
// The promise, per consumer and event id: the handler's SQL writes are committed exactly once, in the transaction that
// inserts a row with the id. There are four ways in, and one transaction behind them:
//
//   - [Handle] registers a typed handler func(ctx, tx, event, data) on a [Mux];
//   - [Inbox.BatchMiddleware] runs many messages of a partition in one transaction: the services use it;
//   - [Inbox.Middleware] wraps any Watermill handler under any Router;
//   - [Inbox.Process] runs a closure under an id. [Inbox.MarkProcessed] records an id in a transaction of your own,
//     [Inbox.IsProcessed] only looks.
//
// # Why no event is applied twice
//
//  1. The row's primary key is (consumer, event_id, event_time), and event_time is a function of the id.
//  2. The insert waits for a transaction that inserts the same id. If that one commits, the id is known, and no handler
//     runs. If it rolls back, the insert succeeds.
//  3. The row, the handler's writes and the key's version are committed together, or none of them.
//  4. The offset is committed later. A process that dies in between gets the event again, and step 2 ends it.
//
// So a row means applied. An event that was given up or parked has a dead letter instead, which remembers its id. The
// tables are those of two migration sets, Inbox and Audit: each replay writes a row of the audit, also that of a parked
// event.
//
// # The files, in the order of an event
//
//	inbox.go         the configuration, and the program around the inbox
//	item.go          a message on its way
//	consume.go       messages are tried, together or in parts
//	transaction.go   the transaction of a batch: run has its steps
//	ids.go           in it: the rows of ids
//	order.go         in it: the rows of keys, and the decision
//	handler.go       in it: typed handlers, and their context
//	queue.go         in it: the handlers' writes
//	deadletter.go    in it: the dead letters
//	point.go         in it: how far the database has the outcomes of a topic-partition
//	outcome.go       outcomes, and the codes of dead letters
//	process.go       a closure under an id
//	replay.go        a dead letter is tried again
//	resume.go        parked events are resumed
//	crash.go         a record that ends its process
//	history.go       what operators can ask
//	pause.go         consumers that an operator has paused
//	metrics.go       counters and times
//
// # The checks, in order
//
// Before the transaction, for each message:
//
//  1. It is decoded. A record that is not an event is given up: dead.
//  2. Its type has no handler: ignored. In an ordered consumer its version counts, so it continues with 5.
//  3. Its payload is checked against its contract (Config.Validate). One that breaks it is given up: dead.
//
// In the transaction, where the point has moved and the rows of the keys are locked:
//
//  4. The id is inserted. If it was there, or has a dead letter, the event is a duplicate if the payload is the same,
//     else a conflict. If the inbox may have forgotten it, the event is expired, or a duplicate if its version is not
//     above the key's. A duplicate that has the key's next version raises the key (strict): its producer's database
//     went back.
//  5. Its version is not above the key's: stale (latest and strict).
//  6. It was given up, by 1, 3 or the attempts before: dead.
//  7. An earlier event of the key waits as a dead letter: parked (strict).
//  8. It has no version, and earlier events of its key had one: dead (latest and strict).
//  9. Its version skips one: gap, which parks it (strict). It skips more than 1000: dead (latest).
//  10. Its handler runs: applied.
//
// # When a handler fails
//
// The transaction is rolled back, and half of its events run, down to one event; then the others. A permanent error
// ([Permanent]) gives the event up immediately. A transient one (database or broker away, a deadlock, a full pool) is
// tried again for as long as it lasts. Any other error is tried 5 times (Config.MaxAttempts), with pauses of 1, 2, 4
// and 8 s, each up to a fifth shorter or longer.
//
// # Order
//
// Handlers run in the order of the partition. For [Latest] and [Strict] the key's row serializes transactions, also of
// a second owner, a replay and an operator. In a strict consumer a dead letter parks the key's later events until it is
// replayed or discarded, a gap until the missing version is applied. Then [Replayer.ResumeParked] runs them.
//
// # A database that went back
//
// The point of a topic-partition is the offset behind the last record whose outcome the database has. It moves in the
// transaction of the outcomes. If it is below the owner's position, the database has lost outcomes: nothing is
// committed, the delivery ends with [ErrWentBack], and the owner reads again from the point.
//
// # Not guaranteed
//
// Effects outside the transaction may repeat: write an intent, and let package lease make the call. There is no order
// across keys, and none in an unordered consumer while two owners overlap.
package inbox
