// Package producer sends the messages of one call as one batch, reports each record, and never lets a later record of a
// key overtake an earlier one that failed.
//
//	publisher.go  a call of Publish, and its records
//	sender.go     rounds of calls
//	exchange.go   a round's requests, and the batches of a partition
//	encode.go     what a record looks like; the same as kafka.Marshaler makes it
//	errors.go     what a broker's answers mean
//
// # Why the publisher does not use sarama's producers
//
// It uses sarama's client, its connections and its record encoding, but not AsyncProducer or SyncProducer, because
// neither can keep the order of a key through a failure. They cut a call into batches as records trickle in (the first
// request often carries a single record), and when the first batch of a partition is refused for good, the next one,
// already queued, is sent anyway: event 7 lies on the log, event 6 does not, and sending 6 again puts it behind 7.
// Here, one goroutine sends at most one batch of a partition at a time and builds the next one only when the fate of
// the last is known. It is also what makes a call cost as few requests as possible: one per broker, unless a
// partition's share exceeds the batch size.
//
// # Why the order of a key survives
//
// Records of a key share a partition. Within a partition, in one call:
//
//  1. A batch is appended whole or not at all, with its records in order. Until it is acknowledged it is sent again
//     unchanged, with the same producer id, epoch and sequence, so the broker recognises a repetition: an answer that
//     was lost or late costs no duplicate.
//  2. The next batch is built only after the last was acknowledged, or after the broker refused it without appending.
//     A refusal that belongs to one record (too large, invalid) is narrowed down to that record by halving the batch;
//     the later records of its key in the call are then failed unsent, the other keys go on.
//  3. Any other failure fails the batch and everything behind it in the partition; nothing behind it is sent.
//
// So a key's records on the log are a prefix of the call, and sending the failed records again, in order, completes it.
// Across calls the one thing left is a batch given up with an unknown outcome: the broker may still append it later.
// Before anything else is sent, the producer epoch is raised. From the first batch that a partition sees under the new
// epoch it refuses the old one, so the late batch lands before it (a duplicate, in order) or never. Only when the
// broker has forgotten the producer id, or this process dies, is there no such fence: then the late batch may lie on
// the log a second time, behind later records. The first occurrences of a key are in order even so.
package producer
