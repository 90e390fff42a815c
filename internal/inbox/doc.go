// Package inbox makes the effect of an event happen once, however often the event is delivered.
//
// The promise, per consumer and event id: the handler's SQL writes are committed exactly once, in the same transaction
// as a row with the id. That row's primary key decides whether the event is new. So the promise holds with two owners
// of one partition, and with a process that dies at any point.
//
// There are four ways in, and one transaction behind them:
//
//   - [Handle] registers a typed handler func(ctx, tx, event, data) on a [Mux];
//   - [Inbox.BatchMiddleware] runs many messages of a partition in one transaction: the services use it;
//   - [Inbox.Middleware] wraps any Watermill handler under any Router;
//   - [Inbox.Process] runs a closure under an id. [Inbox.MarkProcessed] records an id in a transaction of your own,
//     [Inbox.IsProcessed] only looks.
//
// # The way of an event
//
// Read the files in this order. consume.go has the loop, and transaction.run the steps of a transaction.
//
//	inbox.go         the configuration, and the program around the inbox
//	consume.go       messages come in and are tried, together or in parts
//	item.go          a message on its way
//	transaction.go   the transaction of a batch
//	point.go         in it: how far the database has the outcomes of a topic-partition
//	order.go         in it: the rows of keys, and the decision
//	ids.go           in it: the rows of ids
//	handler.go       in it: typed handlers, and their context
//	queue.go         in it: the handlers' writes, and the commit
//	deadletter.go    in it: the dead letters
//	outcome.go       outcomes, and the codes of dead letters
//	process.go       a closure under an id
//	replay.go        a dead letter is tried again
//	resume.go        parked events are resumed
//	crash.go         a record that ends its process
//	metrics.go       counters and times
//	history.go       what operators can ask
//	pause.go         consumers that an operator has paused
//
// # The checks, in order
//
// Before the transaction, for each message:
//
//  1. It is decoded. A record that is not an event is given up: dead.
//  2. Its type has no handler: ignored. In an ordered consumer its version counts, so it continues with 5.
//  3. Its payload is checked against its contract (Config.Validate). One that breaks it is given up: dead.
//
// In the transaction:
//
//  4. The point moves behind the records, see below. The rows of the keys are locked (latest and strict).
//  5. The id is inserted. An id that was there, or has a dead letter, is a duplicate if the payload is the same, else a
//     conflict. An id older than the inbox remembers is expired. A duplicate that has the key's next version raises
//     the key (strict): its producer's database went back.
//  6. Its version is not above the key's: stale (latest and strict).
//  7. It was given up, by 1, 3 or the attempts before: dead.
//  8. An earlier event of the key waits as a dead letter: parked (strict).
//  9. It has no version, and earlier events of its key had one: dead (latest and strict).
//  10. Its version skips one: gap, which parks it (strict). It skips more than 1000: dead (latest).
//  11. Its handler runs: applied.
//  12. Dead letters are stored. An event that was not applied loses its row: a row means applied. Everything is
//     committed.
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
// a second owner, a replay and an operator. In a strict consumer a dead letter parks the later events of its key until
// it is replayed or discarded, a gap until the missing version is applied. Then [Replayer.ResumeParked] runs them.
//
// # A database that went back
//
// For each topic-partition the database has a point: the offset behind the last record whose outcome it has, and when
// the broker appended that record. It moves in the transaction of the outcomes. If it is below the owner's position
// ([event.Origin], From), the database has lost outcomes: nothing is committed, the delivery ends with [ErrWentBack],
// and the owner reads again from the point.
//
// # Not guaranteed
//
// Effects outside the transaction may repeat: write an intent, and let package lease make the call. There is no order
// across keys, and none in an unordered consumer while two owners overlap.
package inbox
