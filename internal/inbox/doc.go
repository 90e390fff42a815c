// Package inbox makes an event's effect happen once, however often the event is delivered.
//
// The promise, per consumer and event id: the handler's SQL writes are committed exactly once, in the same transaction
// as a row that remembers the id. The constraint on that row decides, not a look beforehand, so the promise holds with
// two consumers working on the same record, with a consumer that lost its partition and does not know yet, and with a
// process that dies at any point. Kafka's offset is acknowledged after that commit, so dying in between costs a
// redelivery, which the row turns into nothing.
//
// What is not promised: effects outside that transaction. A handler that calls another system does so as often as it
// runs; write a row here and let a sender do the call (see package notification for one). Nor is there an order across
// keys. What retention has removed is not applied again either: an event from before the inbox's memory is
// dead-lettered.
//
// There are three ways in, all on one engine:
//
//   - [Inbox.Middleware] wraps any Watermill handler, and [Inbox.BatchMiddleware] does so for many messages at once;
//   - [Handle] registers a typed handler func(ctx, tx, event, data) on a [Mux];
//   - [Inbox.Process] runs a closure under an id, for events that do not come through Watermill.
//
// A handler says what to do by what it returns: nil commits; [Permanent] gives the event up at once; an error of the
// surroundings (database or broker down) is tried again for as long as that lasts; any other error is tried
// MaxAttempts times. What is given up goes to the dead_letter table, byte for byte, in the transaction that decides it,
// and the partition moves on.
package inbox
