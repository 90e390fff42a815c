package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// ReadLog calls each for the records that a topic holds when it is called, partition by partition in the order of their
// offsets: the last ones of each partition, or all of them with last 0. What is damaged on the log is left out, as are
// the records of transactions that were given up. A topic that does not exist holds none.
//
// It reads past all consumer groups, and ends between two requests when ctx does.
func ReadLog(ctx context.Context, cfg Config, topic string, last int64, each func(*message.Message) error) error {
	return ask(ctx, cfg, "read log of "+topic, func(c cluster) error {
		oldest, newest, err := c.ends(topic, sarama.ReadUncommitted)
		if err != nil {
			return err
		}
		for p, end := range newest {
			from := oldest[p]
			if last > 0 {
				from = max(from, end-last)
			}
			if _, err := c.scan(topic, int32(p), from, end, each); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanBytes is how much of a log is asked for at once.
const scanBytes = 1 << 20

// scan calls each for the records of a partition that a consumer would get, in the order of their offsets, and returns
// the offset behind what it has seen. That is less than to where an open transaction lies before it. What is damaged on
// the log, and what was deleted meanwhile, is left out.
func (c cluster) scan(
	topic string, partition int32, from, to int64, each func(*message.Message) error,
) (next int64, err error) {
	at := TopicPartition{Topic: topic, Partition: partition}
	for next = from; next < to; {
		if err := c.ctx.Err(); err != nil {
			return next, err
		}
		var found fetched
		err := c.settled(topic, func() (err error) {
			found, err = c.fetch(at, next, scanBytes)
			return err
		})
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			// The records there were deleted meanwhile if the first offset lies behind them.
			oldest, unknown := c.client.GetOffset(topic, partition, sarama.OffsetOldest)
			if found.next = oldest; unknown != nil || oldest > next {
				err = unknown
			}
		}
		if err != nil {
			return next, fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		for _, m := range found.records {
			if m.Offset >= to {
				break
			}
			if err := each(decode(c.ctx, "", m)); err != nil {
				return m.Offset, err
			}
		}
		if found.damage != nil {
			found.next = max(found.next, next+1) // behind a batch that says nothing of its end, the next one may be readable
		}
		if found.next == next {
			return next, nil
		}
		next = found.next
	}
	return max(next, to), nil
}
