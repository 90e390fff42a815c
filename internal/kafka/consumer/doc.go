// Package consumer reads topics as a member of a group: a [Consumer] calls a handler with the records of a
// topic-partition, in order, and commits offsets only up to the first unhandled record; the handler's context ends when
// the partition is gone.
//
// usual_ways_test.go shows what watermill-kafka's Subscriber cannot promise under the same settings.
//
//	consumer.go config.go      a handler's batches, the settings, what ends a membership and what it says about itself
//	member.go coordination.go  a membership of the group
//	partition.go queue.go      a partition that is owned, what is taken of it, and how much of it is held
//	positions.go               how far the handler's own store says it is read, and of which topic
//	look.go                    what lies on the log and is not delivered
//
// # How a partition is read
//
// sarama's consumer group brings the membership, its fetching the records. For each partition, a worker takes what is
// there, hands it over, marks the handled beginning, and waits a while before it hands over the rest. Beside it, one
// goroutine takes records from sarama for as long as they may be held, and the one that sarama gives to the claim waits
// for the end: when the partition goes to another member, when the session is lost, when the process stops. Then
// nothing more is handed over, the handler under way gets its time, its context is cancelled, and it gets the same time
// again. What it acknowledges meanwhile is committed, as long as the group waits for this member. The other partitions
// are not disturbed: the group rebalances cooperatively.
//
// # Memory
//
// At most this for each partition, however long the backlog is and however long a handler hangs:
//
//   - [Config.MaxBytes], 4 MB, or one larger record: the batch under way and what lies ready behind it, half
//     of that at most;
//   - two records more, on their way there;
//   - its share of one answer of the broker: [kafka.GroupConfig.FetchBytes] as it lies on the log, 256 KiB, or one
//     batch if that is larger. Decompressed that is at most 255 times as much with lz4, which the publisher uses, and
//     16 MiB of each batch with any codec. Not compressed it keeps the whole answer: four times FetchBytes, or
//     one batch.
//
// So twelve topic-partitions of records of 1 MB take 84 MB. Reading a compressed batch takes up to four times its size
// for a moment. Memory of the handlers comes on top.
//
// # Unreadable batches, and records that do not arrive
//
// sarama asks a broker for all partitions at once. A batch that it cannot decode (a checksum that is wrong, a
// decompression that exceeds 16 MiB) fails the whole answer, and all partitions of that broker are asked for again, and
// fail again, for ever; a batch whose records end early is taken for an answer cut short and asked for again without
// any error. So a partition for which sarama reports errors, or for which nothing comes, looks for itself, on a
// connection of its own, at the one batch that lies next:
//
//   - There is no record, or only records that consumers are not shown: all is well.
//   - A batch that cannot be read, three times in a row: it is handed over as one message that names its offsets and
//     the reason ([cloudevent.Origin.Unreadable]), so that it ends in the dead letters like other bad records, and the
//     partition goes on. Losing the records of the batch was the disk's doing; stopping the partition behind it
//     would take the others' as well. Until it is acknowledged, sarama reads the other partitions without this one;
//     then a new session starts behind it.
//   - Records: while sarama fails, they are taken past it, since the bad batch may be another partition's. When it
//     reports nothing and delivers nothing, the partition is stalled: Healthy fails and names it, and after
//     [Config.StopAfter] the membership ends with a [ErrStalled], so that the process is started again. A handler
//     that does not return within [Config.HandlerLimit] is a stall too. One that returns errors is not: what
//     it needs is down, and would be after a restart; Healthy says so.
//
// A committed offset that is gone, or is of a topic that was deleted and created anew under the same name, ends the
// membership with an [ErrOffsetGone], because any other offset would lose or repeat without a word. To tell the two
// topics apart, the metadata of each committed offset holds the topic's id.
package consumer
