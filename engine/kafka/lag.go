package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
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
// Members commit once in [GroupConfig.CommitInterval], so a group that keeps up is behind by what it handled since.
type LagReader struct {
	reader *batchReader

	mu    sync.Mutex
	waits map[string]map[topicPartition]wait // by group: a group may read a topic that another one reads
}

// wait is since when a topic-partition is known to wait at an offset.
type wait struct {
	offset int64
	since  time.Time
}

// NewLagReader connects nowhere. Close it when it is not needed any more.
func NewLagReader(cfg Config) (*LagReader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure lag reader: %w", err)
	}
	return &LagReader{
		reader: &batchReader{cfg: GroupConfig{Config: cfg}}, waits: make(map[string]map[topicPartition]wait),
	}, nil
}

// Close closes the connections. A Read under way returns an error.
func (r *LagReader) Close() error { return r.reader.close() }

// Read returns the lag of every partition of the topic. It asks the group's coordinator and each leader once, and reads
// one record of each partition in which something waits. It stops asking when ctx ends, and gives up on a broker that
// does not answer after [Config.RequestTimeout].
func (r *LagReader) Read(ctx context.Context, group, topic string) ([]Lag, error) {
	client, err := r.reader.connected()
	if err != nil {
		return nil, err
	}
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	committed, err := r.reader.committed(group, topic, partitions...)
	if err != nil {
		return nil, err
	}
	ends, err := r.reader.offsets(ctx, topic, partitions, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	starts, err := r.reader.offsets(ctx, topic, partitions, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	lags := make([]Lag, len(partitions))
	for i, partition := range partitions {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read lag of %s: %w", topic, context.Cause(ctx))
		}
		next := committed[partition].offset
		// No offset, one whose records were deleted, or one beyond the end, which is of a topic that was created anew:
		// all that is there waits.
		if next < starts[partition] || next > ends[partition] {
			next = starts[partition]
		}
		lags[i], err = r.lag(ctx, group, topicPartition{topic, partition}, next, ends[partition])
		if err != nil {
			return nil, err
		}
	}
	return lags, nil
}

// lag looks at the first record that waits. Offsets of which none holds a record, such as the marks that end a
// transaction or what compaction left, are no lag.
func (r *LagReader) lag(ctx context.Context, group string, at topicPartition, next, end int64) (Lag, error) {
	lag := Lag{Topic: at.topic, Partition: at.partition}
	for next < end {
		f, err := r.reader.read(at, next)
		switch {
		case err != nil:
			return lag, fmt.Errorf("read first record of %s/%d: %w", at.topic, at.partition, err)
		case f.damage != nil:
			lag.Records, lag.Age = end-next, r.waiting(group, at, next, time.Time{})
			return lag, nil
		case len(f.records) > 0:
			first := f.records[0]
			lag.Records, lag.Age = end-next, r.waiting(group, at, first.Offset, first.Timestamp)
			return lag, nil
		case f.next == f.from: // nothing there yet that the group may read
			end = next
		}
		if next = f.next; ctx.Err() != nil {
			return lag, fmt.Errorf("read first record of %s/%d: %w", at.topic, at.partition, context.Cause(ctx))
		}
	}
	r.forget(group, at)
	return lag, nil
}

// waiting is how long the record at the offset has been on the log. A record that does not say when it was written, or
// says what cannot be, has been there since it was first seen here.
func (r *LagReader) waiting(group string, at topicPartition, offset int64, written time.Time) time.Duration {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.waits[group]
	if seen == nil {
		seen = make(map[topicPartition]wait)
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

func (r *LagReader) forget(group string, at topicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits[group], at)
}

// commit is a group's offset in a partition and what was noted beside it. The offset is negative when there is none.
type commit struct {
	offset   int64
	metadata string
}

// committed asks for the group's offsets.
func (r *batchReader) committed(group, topic string, partitions ...int32) (map[int32]commit, error) {
	client, err := r.connected()
	if err != nil {
		return nil, err
	}
	coordinator, end, err := r.turn(func() (*sarama.Broker, error) { return client.Coordinator(group) })
	if err != nil {
		return nil, fmt.Errorf("find coordinator of %s: %w", group, err)
	}
	defer end()
	wanted := map[string][]int32{topic: partitions}
	answer, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(client.Config().Version, group, wanted))
	if err != nil {
		_ = coordinator.Close() // it is opened again when it is needed
		return nil, errors.Join(fmt.Errorf("fetch offsets of %s: %w", group, err), client.RefreshCoordinator(group))
	}
	found := make(map[int32]commit, len(partitions))
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		switch {
		case answer.Err == sarama.ErrGroupIDNotFound:
			found[partition] = commit{offset: -1} // as other brokers say it
			continue
		case answer.Err != sarama.ErrNoError:
			err = answer.Err
		case block == nil:
			err = sarama.ErrIncompleteResponse
		case block.Err != sarama.ErrNoError:
			err = block.Err
		default:
			found[partition] = commit{block.Offset, block.Metadata}
			continue
		}
		return nil, errors.Join(fmt.Errorf("fetch offsets of %s: %w", group, err), client.RefreshCoordinator(group))
	}
	return found, nil
}

// offsets asks the leaders for the first offset of each log or for the one behind the last record that is committed.
func (r *batchReader) offsets(
	ctx context.Context, topic string, partitions []int32, which int64,
) (map[int32]int64, error) {
	client, err := r.connected()
	if err != nil {
		return nil, err
	}
	led := make(map[int32][]int32) // partitions by their leader
	for _, partition := range partitions {
		leader, err := client.Leader(topic, partition)
		if err != nil {
			return nil, fmt.Errorf("find leader of %s/%d: %w", topic, partition, err)
		}
		led[leader.ID()] = append(led[leader.ID()], partition)
	}
	offsets := make(map[int32]int64, len(partitions))
	for id, partitions := range led {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list offsets of %s: %w", topic, context.Cause(ctx))
		}
		if err := r.offsetsOf(client, id, topic, partitions, which, offsets); err != nil {
			return nil, errors.Join(fmt.Errorf("list offsets of %s: %w", topic, err), client.RefreshMetadata(topic))
		}
	}
	return offsets, nil
}

// offsetsOf asks one leader.
func (r *batchReader) offsetsOf(
	client sarama.Client, id int32, topic string, partitions []int32, which int64, offsets map[int32]int64,
) error {
	leader, end, err := r.turn(func() (*sarama.Broker, error) { return client.Leader(topic, partitions[0]) })
	if err != nil {
		return err
	}
	defer end()
	if leader.ID() != id {
		return sarama.ErrNotLeaderForPartition // it has moved since the partitions were sorted
	}
	request := sarama.NewOffsetRequest(client.Config().Version)
	request.IsolationLevel = sarama.ReadCommitted
	for _, partition := range partitions {
		request.AddBlock(topic, partition, which, 1)
	}
	answer, err := leader.GetAvailableOffsets(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
		return err
	}
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		switch {
		case block == nil:
			return sarama.ErrIncompleteResponse
		case block.Err != sarama.ErrNoError:
			return block.Err
		}
		offsets[partition] = block.Offset
	}
	return nil
}
