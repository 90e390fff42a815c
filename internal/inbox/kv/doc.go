// Package kv is the inbox of handlers without a database: it remembers in NATS JetStream's key-value store which events
// had their effect, with a bounded cache of that in the process. It is a module of its own, so a service without it
// does not carry NATS.
//
// The promise, per consumer and event id: an effect that was remembered is not repeated for as long as the store
// remembers it, which is the bucket's time to live (24 hours by default). Deliveries of one id that overlap
// have one effect, in one process and in several, as long as the handler ends within [Config.HandlerTimeout]. A store
// that does not answer stops the consumer ([Pause]), or not, if twice is better than late ([Apply]).
//
// It does not promise what [example.com/twinbox/internal/inbox] does: effect and memory are two systems, and no
// transaction spans both. An event is repeated, once for each of these, and each but the last two is counted in
// inbox_kv_second_effects_possible_total:
//
//   - crash: a process died between the effect and the mark; its successor repeats the effect. The window is one round
//     trip to the store, and the handler's own time for an effect that is done before its handler returns.
//   - late: a handler ran for longer than [Config.HandlerTimeout] plus the time for its mark, and another process took
//     its event over.
//   - unmarked: a call ended, at the end of its context, while the store was away and the effect was there already.
//     This process writes the mark when the event comes again; another one repeats the effect.
//   - outage: under [Apply], the store was away.
//   - The store has forgotten: the time to live has passed, or a power cut took what NATS had not synced (by default up
//     to two minutes, acknowledged writes included).
//   - A process was wrong about what it did: a webhook answered with an error and had its effect all the same.
//
// The metric counts possible second effects: a process that died before its effect is counted as well. So give the
// effect a key that the receiver recognises, such as the event's id as an Idempotency-Key.
//
// There is no order, no version, no comparison of payloads and no table of dead letters: an event's outcome is
// [Applied], [Duplicate] or [Failed], which mean what they mean in the SQL inbox.
//
// # The protocol
//
//	cache    is the id known to be done?                              yes: duplicate
//	store    put "began" where there is nothing                       done there: duplicate; began: wait, or take over
//	handler  has its effect                                           an error: the "began" is deleted
//	store    put "done" over this "began" and nothing else            another one there: duplicate, found late
//	cache    note the id, now that the store has said yes
//
// A conditional write decides whether an id is new, never a read: a replica of the store may answer a read with old
// data. It costs an event two round trips, as a read and a write would.
//
// A "began" of this process comes from a call that failed. One of the same [Config.Owner] in an earlier life is
// one of a process that died, and is taken over immediately. Any other one may belong to a process that is at work: it
// is taken over when it has not changed for as long as a handler may take, measured here, by no other machine's clock.
//
//	config.go inbox.go          what is configured, one call
//	claim.go mark.go            the two writes around the handler
//	twins.go cache.go           calls for one id at the same moment; what is known without asking
//	middleware.go               Watermill's way in
//	store.go jetstream.go       what a store must do, and NATS as one
//	memory.go                   one in memory, for tests and for programs that may forget at each start
//
// # Memory
//
// An id of any length takes 32 bytes, and about 200 with the cache's overhead: 20 MB for the default of 100,000 ids,
// 200 MB for a million. TestAnIDTakesSoManyBytes holds that. In the store an id is a record of about 150 bytes, and
// NATS keeps an index of the bucket's keys in memory.
package kv
