package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// Lag is what waits in one topic-partition for one consumer group.
type Lag struct {
	Topic     string
	Partition int32
	// Records is how many offsets lie between what the group has committed and the end of the log; 0 when none of them
	// holds a record that the group would get.
	Records int64
	// Age is since when the first of these records has been on the log; 0 when none waits.
	Age time.Duration
}

// LagReader asks brokers how far consumer groups are behind. It reads what is committed and what is on the log, so its
// answer does not depend on any member: it is the same on every instance, and true while the consumer stands, is not
// running, or has never run. Safe for concurrent use.
//
// Members commit once in [kafka.GroupConfig.CommitInterval], so a group that keeps up is behind by what it handled
// since.
type LagReader struct {
	reader *reader.Reader

	mu    sync.Mutex
	waits map[string]map[reader.TopicPartition]wait // by group: a group may read a topic that another one reads
}

// wait is since when a topic-partition is known to wait at an offset.
type wait struct {
	offset int64
	since  time.Time
}

// NewLagReader connects nowhere. Close it when it is not needed any more.
func NewLagReader(cfg kafka.Config) (*LagReader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure lag reader: %w", err)
	}
	return &LagReader{
		reader: reader.New(cfg.Brokers, cfg.Client()), waits: make(map[string]map[reader.TopicPartition]wait),
	}, nil
}

// Close closes the connections. A Read under way returns an error.
func (r *LagReader) Close() error { return r.reader.Close() }

// Read returns the lag of every partition of the topic. It asks the group's coordinator and each leader once, and reads
// one record of each partition in which something waits. It stops asking when ctx ends, and gives up on a broker that
// does not answer after [kafka.Config.RequestTimeout].
func (r *LagReader) Read(ctx context.Context, group, topic string) ([]Lag, error) {
	client, err := r.reader.Connected()
	if err != nil {
		return nil, err
	}
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	committed, err := r.reader.Committed(group, topic, partitions...)
	if err != nil {
		return nil, err
	}
	ends, err := r.reader.Offsets(ctx, topic, partitions, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	starts, err := r.reader.Offsets(ctx, topic, partitions, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	lags := make([]Lag, len(partitions))
	for i, partition := range partitions {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read lag of %s: %w", topic, context.Cause(ctx))
		}
		next := committed[partition].Offset
		// No offset, one whose records were deleted, or one beyond the end, which is of a topic that was created anew:
		// all that is there waits.
		if next < starts[partition] || next > ends[partition] {
			next = starts[partition]
		}
		lags[i], err = r.lag(ctx, group, reader.TopicPartition{Topic: topic, Partition: partition}, next, ends[partition])
		if err != nil {
			return nil, err
		}
	}
	return lags, nil
}

// lag looks at the first record that waits. Offsets of which none holds a record, such as the marks that end a
// transaction or what compaction left, are no lag.
func (r *LagReader) lag(ctx context.Context, group string, at reader.TopicPartition, next, end int64) (Lag, error) {
	lag := Lag{Topic: at.Topic, Partition: at.Partition}
	for next < end {
		f, err := r.reader.Read(at, next)
		switch {
		case err != nil:
			return lag, fmt.Errorf("read first record of %s/%d: %w", at.Topic, at.Partition, err)
		case f.Damage != nil:
			lag.Records, lag.Age = end-next, r.waiting(group, at, next, time.Time{})
			return lag, nil
		case len(f.Records) > 0:
			first := f.Records[0]
			lag.Records, lag.Age = end-next, r.waiting(group, at, first.Offset, first.Timestamp)
			return lag, nil
		case f.Next == f.From: // nothing there yet that the group may read
			end = next
		}
		if next = f.Next; ctx.Err() != nil {
			return lag, fmt.Errorf("read first record of %s/%d: %w", at.Topic, at.Partition, context.Cause(ctx))
		}
	}
	r.forget(group, at)
	return lag, nil
}

// waiting is how long the record at the offset has been on the log. A record that does not say when it was written, or
// says what cannot be, has been there since it was first seen here.
func (r *LagReader) waiting(group string, at reader.TopicPartition, offset int64, written time.Time) time.Duration {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.waits[group]
	if seen == nil {
		seen = make(map[reader.TopicPartition]wait)
		r.waits[group] = seen
	}
	if seen[at].offset != offset || seen[at].since.IsZero() {
		seen[at] = wait{offset, now}
	}
	if written.Unix() > 0 && !written.After(now) {
		return now.Sub(written)
	}
	return now.Sub(seen[at].since)
}

func (r *LagReader) forget(group string, at reader.TopicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits[group], at)
}
