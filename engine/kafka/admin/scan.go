package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// Log answers questions about what is on the log, past all consumer groups. It is safe for concurrent use.
type Log struct{ Config kafka.Config }

// Ends returns of each partition of a topic, in their order, the first offset and the one behind the last record, that
// of an open transaction included. A topic that does not exist has none.
func (l Log) Ends(ctx context.Context, topic string) (oldest, newest []int64, err error) {
	err = ask(ctx, l.Config, "find the ends", func(c cluster) error {
		if oldest, newest, err = c.ends(topic, sarama.ReadUncommitted); err == nil && len(oldest) != len(newest) {
			err = sarama.ErrIncompleteResponse // it was given more of them in between
		}
		return err
	})
	return oldest, newest, err
}

// Since returns of each partition the first offset whose record was written at that time or later, or its end.
func (l Log) Since(ctx context.Context, topic string, at time.Time) (first []int64, err error) {
	err = ask(ctx, l.Config, "find offsets", func(c cluster) error {
		if first, err = c.offsets(topic, at.UnixMilli(), sarama.ReadUncommitted); err != nil {
			return err
		}
		ends, err := c.offsets(topic, sarama.OffsetNewest, sarama.ReadUncommitted)
		for i := range first {
			if first[i] < 0 && i < len(ends) {
				first[i] = ends[i]
			}
		}
		return err
	})
	return first, err
}

// Committed returns what a group has committed of each partition of a topic, -1 where there is nothing, and whether
// that was of a topic of this name that was deleted since; see consumer.Consumer. Brokers before 2.8 do not say that.
func (l Log) Committed(
	ctx context.Context, group, topic string,
) (offsets []int64, otherTopic []bool, err error) {
	err = ask(ctx, l.Config, "read offsets of "+group, func(c cluster) error {
		partitions, err := c.client.Partitions(topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list partitions of %s: %w", topic, err)
		}
		committed, err := c.reader.Committed(group, topic, partitions...)
		if err != nil {
			return err
		}
		id, err := c.reader.TopicID(reader.TopicPartition{Topic: topic, Partition: partitions[0]})
		if err != nil {
			return err
		}
		offsets, otherTopic = make([]int64, len(partitions)), make([]bool, len(partitions))
		for i, partition := range partitions {
			c := committed[partition]
			offsets[i], otherTopic[i] = c.Offset, reader.IsTopicID(c.Metadata) && id != "" && c.Metadata != id
		}
		return nil
	})
	return offsets, otherTopic, err
}

// Place is the partition to which a key belongs in a topic with so many of them: where package producer puts it.
func (Log) Place(topic, key string, partitions int32) (int32, error) {
	keyed := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key)}
	return sarama.NewMurmur2Partitioner(topic).Partition(keyed, partitions)
}

// Scan calls each for the records of a partition that a consumer would get, in the order of their offsets, and returns
// the offset behind what it has seen. That is less than to where an open transaction lies before it. What is damaged on
// the log, and what was deleted meanwhile, is left out. It ends between two requests when ctx does.
func (l Log) Scan(
	ctx context.Context, topic string, partition int32, from, to int64, each func(*message.Message),
) (next int64, err error) {
	next = from
	err = ask(ctx, l.Config, "scan", func(c cluster) error {
		next, err = c.scan(topic, partition, from, to, func(m *message.Message) error {
			each(m)
			return nil
		})
		return err
	})
	return next, err
}
