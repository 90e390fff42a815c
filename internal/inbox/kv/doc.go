// Package kv is the inbox of handlers without a database: NATS JetStream's key-value store remembers which events had
// their effect, with a bounded cache in the process.
//
// It guarantees, per consumer and event id, that a remembered effect is not repeated during the bucket's time to live
// (default: 24 hours). Overlapping deliveries of one id have one effect, if the handler ends within
// [Config.HandlerTimeout]. A store that does not answer stops the consumer.
//
// # Not guaranteed
//
// Effect and memory are two systems, without a common transaction. An event may be repeated for each of these; the
// metric inbox_kv_second_effects_possible_total counts the first three:
//
//   - crash: a process died between the effect and the mark, which is one round trip to the store.
//   - late: a handler ran for longer than [Config.HandlerTimeout], and another process took its event over.
//   - unmarked: a call's context ended after the effect, while the store was away. This process writes the mark when
//     the event comes again; another one repeats the effect.
//   - The store has forgotten: the time to live has passed, or a power cut took what NATS had not synced.
//   - A webhook answered with an error and had its effect all the same.
//
// So give the effect a key that the receiver recognises, such as the event's id as an Idempotency-Key. There is no
// order, no version, no comparison of payloads and no table of dead letters.
//
// # The protocol
//
//	cache    is the id known to be done?                   yes: duplicate
//	store    put "began" where there is nothing            done there: duplicate; began: wait, or take over
//	handler  has its effect                                an error: the "began" is deleted
//	store    put "done" over this "began"                  another one there: duplicate, found late
//	cache    note the id
//
// A conditional write decides whether an id is new: a read may return old data. A process takes over its own "began",
// and an earlier life's of the same [Config.Owner], immediately. It takes over any other when that has not changed for
// as long as a handler may take, measured on the local clock.
package kv
