// Package kafkalog reads topics of Kafka for a verification. Package verify itself knows no broker.
package kafkalog

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/kafka"
)

// Log answers questions about what is on the log, past all consumer groups. It is safe for concurrent use.
type Log struct{ Config kafka.Config }

// Ends returns of each partition of a topic, in their order, the first offset and the one behind the last record, that
// of an open transaction included. A topic that does not exist has none.
func (l Log) Ends(ctx context.Context, topic string) (oldest, newest []int64, err error) {
	err = kafka.Ask(ctx, l.Config, "find the ends", func(c kafka.Cluster) error {
		partitions, err := c.Partitions(topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		if err == nil {
			oldest, err = c.Offsets(topic, partitions, sarama.OffsetOldest)
		}
		if err == nil {
			newest, err = c.Offsets(topic, partitions, sarama.OffsetNewest)
		}
		return err
	})
	return oldest, newest, err
}

// Since returns of each partition the first offset whose record was written at that time or later, or its end.
func (l Log) Since(ctx context.Context, topic string, at time.Time) (first []int64, err error) {
	err = kafka.Ask(ctx, l.Config, "find offsets", func(c kafka.Cluster) error {
		partitions, err := c.Partitions(topic)
		if err != nil {
			return err
		}
		if first, err = c.Offsets(topic, partitions, at.UnixMilli()); err != nil {
			return err
		}
		ends, err := c.Offsets(topic, partitions, sarama.OffsetNewest)
		for i := range ends {
			if first[i] < 0 {
				first[i] = ends[i]
			}
		}
		return err
	})
	return first, err
}

// Committed returns what a group has committed of each partition of a topic, -1 where there is nothing.
func (l Log) Committed(ctx context.Context, group, topic string) (offsets []int64, err error) {
	err = kafka.Ask(ctx, l.Config, "read offsets of "+group, func(c kafka.Cluster) error {
		partitions, err := c.Partitions(topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		if err == nil {
			offsets, err = c.Committed(group, topic, partitions)
		}
		return err
	})
	return offsets, err
}

// Place is the partition to which a key belongs in a topic with so many of them: where [kafka.Publisher] puts it.
func (Log) Place(topic, key string, partitions int32) (int32, error) {
	keyed := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key)}
	return sarama.NewMurmur2Partitioner(topic).Partition(keyed, partitions)
}

// Scan calls each for the records of a partition that a consumer would get, in the order of their offsets, and returns
// the offset behind what it has seen. That is less than to where an open transaction lies before it. What was deleted
// meanwhile is left out; what is damaged on the log is an error. It ends between two requests when ctx does.
func (l Log) Scan(
	ctx context.Context, topic string, partition int32, from, to int64, each func(*message.Message),
) (next int64, err error) {
	next = from
	err = kafka.Ask(ctx, l.Config, "scan", func(c kafka.Cluster) error {
		next, err = c.Scan(topic, partition, from, to, func(m *message.Message) error {
			each(m)
			return nil
		})
		return err
	})
	return next, err
}
