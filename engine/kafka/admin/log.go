package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/internal/codec"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// ReadLog calls each for the records that a topic holds when it is called, partition by partition in the order of their
// offsets: the last ones of each partition, or all of them with last 0. What is damaged on the log is left out, as are
// the records of transactions that were given up. A topic that does not exist holds none.
//
// It reads a batch per request, past all consumer groups. It ends between two of them when ctx does.
func ReadLog(ctx context.Context, cfg kafka.Config, topic string, last int64, each func(*message.Message) error) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	r := reader.New(cfg.Brokers, within(ctx, cfg))
	err := readLog(ctx, r, topic, last, each)
	if err != nil {
		err = fmt.Errorf("read log of %s: %w", topic, err)
	}
	return errors.Join(err, r.Close())
}

func readLog(
	ctx context.Context, r *reader.Reader, topic string, last int64, each func(*message.Message) error,
) error {
	client, err := r.Connected()
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
		if err := readPartition(ctx, r, reader.TopicPartition{Topic: topic, Partition: p}, from, end, each); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return nil
}

func readPartition(
	ctx context.Context, r *reader.Reader, at reader.TopicPartition, from, end int64, each func(*message.Message) error,
) error {
	for offset := from; offset < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := r.Read(at, offset)
		if err != nil {
			return err
		}
		for _, m := range f.Records {
			if m.Offset >= end {
				return nil
			}
			if err := each(codec.Decode(ctx, m)); err != nil {
				return err
			}
		}
		offset = max(f.Next, offset+1) // behind a batch that says nothing of its end, the next offset may be readable
	}
	return nil
}

// logEnds are the first offset of a partition and the one behind its last record.
type logEnds struct{ oldest, newest int64 }

func readEnds(client sarama.Client, topic string) (map[int32]logEnds, error) {
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("look up partitions: %w", err)
	}
	ends := make(map[int32]logEnds, len(partitions))
	for _, p := range partitions {
		oldest, errOldest := client.GetOffset(topic, p, sarama.OffsetOldest)
		newest, errNewest := client.GetOffset(topic, p, sarama.OffsetNewest)
		if err := errors.Join(errOldest, errNewest); err != nil {
			return nil, fmt.Errorf("read log of partition %d: %w", p, err)
		}
		ends[p] = logEnds{oldest, newest}
	}
	return ends, nil
}
