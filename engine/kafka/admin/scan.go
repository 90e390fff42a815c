package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/internal/codec"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// LogReader reads what is on the log, past all consumer groups. It is safe for concurrent use.
type LogReader struct {
	reader *reader.Reader
	cfg    kafka.Config
}

// NewLogReader connects nowhere. Close it when it is not needed any more.
func NewLogReader(cfg kafka.Config) (*LogReader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure log reader: %w", err)
	}
	return &LogReader{reader: reader.New(cfg.Brokers, cfg.Client()), cfg: cfg}, nil
}

// Close closes the connections.
func (r *LogReader) Close() error { return r.reader.Close() }

// Ends returns of each partition of a topic, in their order, the first offset and the one behind the last record, that
// of an open transaction included. A topic that does not exist has none.
func (r *LogReader) Ends(ctx context.Context, topic string) (oldest, newest []int64, err error) {
	oldest, err = r.offsets(ctx, topic, sarama.OffsetOldest)
	if err == nil {
		newest, err = r.offsets(ctx, topic, sarama.OffsetNewest)
	}
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return nil, nil, nil
	}
	if err == nil && len(oldest) != len(newest) {
		err = sarama.ErrIncompleteResponse // it was given more of them in between
	}
	return oldest, newest, err
}

// Since returns of each partition the first offset whose record was written at that time or later, or its end.
func (r *LogReader) Since(ctx context.Context, topic string, at time.Time) ([]int64, error) {
	first, err := r.offsets(ctx, topic, at.UnixMilli())
	if err != nil {
		return nil, err
	}
	ends, err := r.offsets(ctx, topic, sarama.OffsetNewest)
	for i := range first {
		if first[i] < 0 && i < len(ends) {
			first[i] = ends[i]
		}
	}
	return first, err
}

func (r *LogReader) offsets(ctx context.Context, topic string, which int64) ([]int64, error) {
	client, err := r.reader.Connected()
	if err != nil {
		return nil, err
	}
	if err := client.RefreshMetadata(topic); err != nil { // it may have been created anew, or have more partitions
		return nil, fmt.Errorf("look up %s: %w", topic, err)
	}
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	offsets := make([]int64, len(partitions))
	for i, partition := range partitions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := r.settled(ctx, client, topic, func() (err error) {
			offsets[i], err = client.GetOffset(topic, partition, which)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("ask for offset of %s/%d: %w", topic, partition, err)
		}
	}
	return offsets, nil
}

// moving are the answers while a partition goes from one broker to another, or was made a moment ago: the brokers learn
// of it one after the other, and a client that asks for metadata may be told of a leader that does not know it yet.
var moving = []error{
	sarama.ErrUnknownTopicOrPartition, sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition,
	sarama.ErrReplicaNotAvailable, sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch,
	sarama.ErrOffsetNotAvailable,
}

// settled asks again, for RequestTimeout at most, while the answer is that the partition moves.
func (r *LogReader) settled(ctx context.Context, client sarama.Client, topic string, ask func() error) error {
	pause := failure.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}
	for end := time.Now().Add(r.cfg.RequestTimeout); ; {
		err := ask()
		if !slices.ContainsFunc(moving, func(known error) bool { return errors.Is(err, known) }) || time.Now().After(end) {
			return err
		}
		timer := time.NewTimer(pause.Next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		_ = client.RefreshMetadata(topic) // what the next question meets says more
	}
}

// Committed returns what a group has committed of each partition of a topic, -1 where there is nothing, and whether
// that was of a topic of this name that was deleted since; see consumer.Consumer. Brokers before 2.8 do not say that.
func (r *LogReader) Committed(
	ctx context.Context, group, topic string,
) (offsets []int64, otherTopic []bool, err error) {
	client, err := r.reader.Connected()
	if err != nil {
		return nil, nil, err
	}
	partitions, err := client.Partitions(topic)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	committed, err := r.reader.Committed(group, topic, partitions...)
	if err != nil {
		return nil, nil, err
	}
	offsets, otherTopic = make([]int64, len(partitions)), make([]bool, len(partitions))
	for i, partition := range partitions {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		id, err := r.reader.TopicID(reader.TopicPartition{Topic: topic, Partition: partition})
		if err != nil {
			return nil, nil, err
		}
		c := committed[partition]
		offsets[i], otherTopic[i] = c.Offset, reader.IsTopicID(c.Metadata) && id != "" && c.Metadata != id
	}
	return offsets, otherTopic, nil
}

// Place is the partition to which a key belongs in a topic with so many of them: where package producer puts it.
func (r *LogReader) Place(topic, key string, partitions int32) (int32, error) {
	partitioner := r.cfg.Producer().Producer.Partitioner(topic)
	return partitioner.Partition(&sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key)}, partitions)
}

// Scan calls each for the records of a partition that a consumer would get, in the order of their offsets, and returns
// the offset behind what it has seen. That is less than to where an open transaction lies before it. What is damaged on
// the log, and what was deleted meanwhile, is left out. It ends between two requests when ctx does.
func (r *LogReader) Scan(
	ctx context.Context, topic string, partition int32, from, to int64, each func(*message.Message),
) (next int64, err error) {
	client, err := r.reader.Connected()
	if err != nil {
		return from, err
	}
	at := reader.TopicPartition{Topic: topic, Partition: partition}
	for next = from; next < to; {
		if err := ctx.Err(); err != nil {
			return next, err
		}
		var records []*sarama.ConsumerMessage
		var behind int64
		err := r.settled(ctx, client, topic, func() (err error) {
			records, behind, err = r.reader.ReadMany(at, next)
			return err
		})
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			behind, err = r.skipDeleted(at, next)
		}
		if err != nil {
			return next, fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		for _, m := range records {
			if m.Offset < to {
				each(codec.Decode(ctx, m))
			}
		}
		if behind == next {
			return next, nil
		}
		next = behind
	}
	return max(next, to), nil
}

// skipDeleted is the first offset that is there, if it lies behind the one asked for.
func (r *LogReader) skipDeleted(at reader.TopicPartition, offset int64) (int64, error) {
	client, err := r.reader.Connected()
	if err != nil {
		return offset, err
	}
	oldest, err := client.GetOffset(at.Topic, at.Partition, sarama.OffsetOldest)
	if err == nil && oldest <= offset {
		err = sarama.ErrOffsetOutOfRange
	}
	return oldest, err
}
