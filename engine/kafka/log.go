package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// ReadLog calls each for the records that a topic holds when it is called, partition by partition in the order of their
// offsets: the last ones of each partition, or all of them with last 0. What is damaged on the log is left out, as are
// the records of transactions that were given up. A topic that does not exist holds none.
//
// It reads a batch per request, past all consumer groups. It ends between two of them when ctx does.
func ReadLog(ctx context.Context, cfg Config, topic string, last int64, each func(*message.Message) error) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	r := &batchReader{cfg: GroupConfig{Config: cfg.within(ctx)}}
	err := r.readLog(ctx, topic, last, each)
	if err != nil {
		err = fmt.Errorf("read log of %s: %w", topic, err)
	}
	return errors.Join(err, r.close())
}

func (r *batchReader) readLog(ctx context.Context, topic string, last int64, each func(*message.Message) error) error {
	client, err := r.connected()
	if err != nil {
		return err
	}
	ends, err := readEnds(client, topic)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return err
	}
	for p := range int32(len(ends)) {
		from, end := ends[p].oldest, ends[p].newest
		if last > 0 {
			from = max(from, end-last)
		}
		if err := r.readPartition(ctx, topicPartition{topic, p}, from, end, each); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return nil
}

func (r *batchReader) readPartition(
	ctx context.Context, at topicPartition, from, end int64, each func(*message.Message) error,
) error {
	for offset := from; offset < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := r.read(at, offset)
		if err != nil {
			return err
		}
		for _, m := range f.records {
			if m.Offset >= end {
				return nil
			}
			if err := each(decode(ctx, "", readable(m))); err != nil {
				return err
			}
		}
		offset = max(f.next, offset+1) // behind a batch that says nothing of its end, the next offset may be readable
	}
	return nil
}

// ErrGroupActive means that a consumer group has members.
var ErrGroupActive = errors.New("the consumer group has members")

// ForgetOffsets makes consumer groups start from the oldest records again. A group that does not exist is no error; one
// that has members is an [ErrGroupActive], and then groups before it may have been forgotten.
func ForgetOffsets(ctx context.Context, cfg Config, groups ...string) error {
	return askCluster(ctx, cfg, func(_ sarama.Client, admin sarama.ClusterAdmin) error {
		for _, group := range slices.Sorted(slices.Values(groups)) {
			err := admin.DeleteConsumerGroup(group)
			switch {
			case errors.Is(err, sarama.ErrNonEmptyGroup):
				return fmt.Errorf("forget offsets of %s: %w", group, ErrGroupActive)
			case err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound):
				return fmt.Errorf("forget offsets of %s: %w", group, err)
			}
		}
		return nil
	})
}
