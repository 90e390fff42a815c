package kafka

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// ReadLog calls each for the records that a topic holds when it is called, partition by partition in the order of their
// offsets: the last ones of each partition, or all of them with last 0. What is damaged on the log is left out, as are
// the records of transactions that were given up. A topic that does not exist holds none.
//
// It reads past all consumer groups, and ends between two requests when ctx does.
func ReadLog(ctx context.Context, cfg Config, topic string, last int64, each func(*message.Message) error) error {
	return Ask(ctx, cfg, "read log of "+topic, func(c Cluster) error {
		oldest, newest, err := c.Ends(topic, sarama.ReadUncommitted)
		if err != nil {
			return err
		}
		for p, end := range newest {
			from := oldest[p]
			if last > 0 {
				from = max(from, end-last)
			}
			if _, err := c.Scan(topic, int32(p), from, end, each); err != nil {
				return err
			}
		}
		return nil
	})
}
