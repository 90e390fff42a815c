// Package inbox makes an event's effect happen once, however often the event is delivered.
//
// The promise, per consumer and event id: the handler's SQL writes are committed exactly once, in the same transaction
// as a row that remembers the id. The constraint on that row decides, not an earlier lookup, so the promise holds with
// two consumers working on the same record, with a consumer that lost its partition and does not know yet, and with a
// process that dies at any point. Kafka's offset is acknowledged after that commit, so dying in between costs a
// redelivery, which the row makes a duplicate without effect.
//
// There are three ways in, all on one engine:
//
//   - [Inbox.Middleware] wraps any Watermill handler, and [Inbox.BatchMiddleware] does so for many messages at once;
//   - [Handle] registers a typed handler func(ctx, tx, event, data) on a [Mux];
//   - [Inbox.Process] runs a closure under an id, for events that do not come through Watermill.
//
// A handler decides by its result: nil commits; [Permanent] gives the event up at once; an error of the surroundings
// (database or broker down) is tried again for as long as the outage lasts; any other error is tried MaxAttempts times.
// A record that is given up goes to the table dead_letter, byte for byte, in the transaction that gives it up, and the
// topic-partition moves on. [Outcome] names every way a delivery can end.
//
//	inbox.go outcome.go      what is configured, the program around it, how a delivery ends
//	handler.go process.go    the ways in beside the middleware, and what a handler finds in its context
//	deliver.go retry.go      deliveries: read, tried again, together, alone, given up
//	engine.go retake.go      one transaction: for new events, for one that was filed
//	tx.go                    what is sent to the database, in few round trips
//	entry.go record.go       what is remembered of an event, the statements for that, what an id means that was there
//	order.go                 a key's order: versions, gaps, what parks behind what
//	deadletter.go            what is given up or parked
//	position.go              how far a topic-partition is, for the day of a restore
//	lookup.go metrics.go     what can be seen from outside
//
// Beside it stand three packages of its own ring: retention says when the inbox forgets, poison finds the record that
// ends its process, and replay takes up dead letters and parked events.
//
// # Why once
//
// A transaction begins with "insert ... on conflict do nothing". If another one has inserted the id and not ended, the
// insert waits for its end: after its commit there is nothing to insert and no handler runs, after its rollback the id
// is this one's. That takes READ COMMITTED, which the transaction asks for itself. An id lies in one table partition
// only, derived from the id alone (entry.go), since a unique index on a partitioned table holds within a partition. An
// event older than the horizon is not inserted but given up as [Expired]: its row may have been dropped.
//
// # Why in order
//
// The topic-partition's loop hands over one batch at a time, and handlers run in the order of the batch. That is not
// enough when two owners overlap, or when a replay runs beside the consumer. So a versioned consumer keeps the version
// that each key has reached. It is moved before the handlers' writes, by a statement that fails if the version is not
// the one that was read (order.go): of two transactions on a key one waits, fails and decides anew. A dead letter
// that holds its key parks the key's later events, and a replay takes up all of them in order (lockHolders has the race
// between them). An event whose predecessor is missing parks too, and goes on when that one is applied (package
// replay). The versions are never purged, so no redelivery can put an old state over a new one, however late it comes.
//
// # Many events in one transaction
//
// The ids of a batch are inserted by one statement, the writes that handlers queue ([Queue]) travel together with the
// commit. If anything fails, all of it is rolled back; then the events before the one to blame run in a transaction of
// their own, that one alone, and the rest as the next batch. So each event has the outcome that it would have alone.
//
// # Memory
//
// The inbox holds the messages of the calls under way, which its caller bounds (package kafka: 200 and 4 MB per
// topic-partition), a few notes beside each, and the writes that its handler queues. It frees all of it with the
// commit. Dead letters are replayed one at a time; package replay reads 1,000 keys at a time and no payloads.
//
// # Tests
//
//	once and in order, dying anywhere    TestAProcessThatDiesAtEachPoint, TestAProcessThatDiesAroundAnyStatement
//	the same event at the same moment    TestTenProcessesWithTheSameEvents, TestConformance
//	owners that overlap                  TestAnOwnerThatWasStopped
//	each outcome, alone and in batches   TestScenarios
//	a record that kills the process      TestAPoisonRecordIsFoundByHalving, TestAPoisonRecordIsFoundAmongManyPartitions
//	what is forgotten, and when          package retention
//	what comes out of order              TestEventsThatComeOutOfOrder; through both services in package e2e
//	replays                              replay_test.go, replay_crash_test.go; beside the consumer: hold_test.go
//
// With a broker, and members that come, go and freeze: crash_test.go and overlap_test.go of package eventing. Effects
// are counted in a table that has no unique constraint.
//
// # What it does not do
//
// Effects outside the transaction may repeat: a handler that calls another system does so each time it runs. Write an
// intent and let package lease make the call. There is no order across keys, nor in a key whose events have no versions
// while two owners overlap.
package inbox
