// Package verify finds events that were lost, doubled, altered, invented or reordered between a service's outbox, its
// topics and its inbox. It reads the database and Kafka with its own connections and needs no running service.
//
//	rule  holds                                                                          kinds
//	V1    a published row has its record, and each of its records equals the row          lost, altered
//	V2    a record of this service has a row                                             ghost
//	V3    a key's rows count without a hole; its records come in that order, in one      gap, reordered, misplaced
//	      topic-partition, the one that its hash names; repetitions count
//	V4    a record below the committed offset has its row in the inbox, with its hash, or  lost, altered
//	      its id has a dead letter, or its type no handler, or it is stale: another event
//	      of its key came before it with this version or a higher one
//	V5    an id has one row, in the outbox and for each consumer; an inbox row that names  twice, ghost
//	      the place of its record has that record
//	V6    the version that a key has reached is not below a version that was applied, and  reordered
//	      not above all versions of its topic
//	V7    a key parks later events from the version of its first waiting dead letter on  lost, reordered
//
// Without a committed offset the position in the consumer's database counts (inbox_point). Events of outbox_lost count
// as rows, so one that was added again has two. A finding of a [Check] has the check's name as its rule.
//
// # Reading while events move
//
// It locks no row and keeps no transaction open. In this order of reading, new events cannot look like a finding:
//
//	produced   1 ends of the topic        2 rows of the outbox                   3 ends again, records up to those
//	consumed   1 committed offsets, ends  2 inbox, dead letters, then keys       3 ends, records up to those
//
// "Lost": a row that was published by 2 is below the ends of 3, and a record below the offset of 1 has its inbox row by
// 2. "Ghost": a record below the ends of 1 was committed as a row before 2. A difference is a suspect. It becomes a
// finding if two more looks, each after a pause, find the same: a heal that is under way ends before that.
//
// # Limits
//
// Outbox, topic and inbox each forget after a time of their own. Events that one side no longer has count as not
// verifiable, with the [Reason]. Clocks may differ by five minutes.
//
// It does not find the loss of a key's last row together with its record, changed trace headers, or a wrong effect
// without a check that looks for it.
//
// It keeps one outbox and topic, or topic and inbox, in memory at a time: about 200 bytes for each row, record and key.
// A further look keeps those of the suspects alone.
package verify
