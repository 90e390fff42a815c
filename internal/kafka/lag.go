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
	// Age is since when the first of these records has been on the log; 0 when none waits. A record that is damaged, or
	// does not say when it was written, or says what cannot be, has been there since it was first seen.
	Age time.Duration
}

// LagReader remembers when it first saw a record whose age the log does not tell. Its zero value is ready; it is safe
// for concurrent use.
type LagReader struct {
	mu   sync.Mutex
	seen map[groupPartition]sighting
}

type groupPartition struct {
	group string // a group may read a topic that another one reads
	TopicPartition
}

type sighting struct {
	offset int64
	at     time.Time
}

// Read asks how far a consumer group is behind in every partition of a topic. It reads what is committed and what is on
// the log, so its answer does not depend on any member: it is the same on every instance, and true while the consumer
// stands, is not running, or has never run.
//
// Members commit once in [GroupConfig.CommitInterval], so a group that keeps up is behind by what it handled
// since. It asks the group's coordinator and each leader, and reads one record of each partition in which something
// waits; a partition that the topic was given meanwhile is left out. It ends when ctx does, and gives up on a broker
// that does not answer after [Config.RequestTimeout].
func (r *LagReader) Read(ctx context.Context, cfg Config, group, topic string) (lags []Lag, err error) {
	err = Ask(ctx, cfg, "read lag of "+group+" in "+topic, func(c Cluster) error {
		committed, err := c.Committed(group, topic)
		if err != nil {
			return err
		}
		starts, ends, err := c.Ends(topic, sarama.ReadCommitted)
		if err != nil && !errors.Is(err, errGrown) {
			return err
		}
		found := make([]Lag, min(len(committed), len(starts), len(ends)))
		for i := range found {
			next := committed[i]
			// No offset, one whose records were deleted, or one beyond the end, which is of a topic that was created anew:
			// all that is there waits.
			if next < starts[i] || next > ends[i] {
				next = starts[i]
			}
			at := groupPartition{group, TopicPartition{Topic: topic, Partition: int32(i)}}
			if found[i], err = r.lag(c, at, next, ends[i]); err != nil {
				return err
			}
		}
		lags = found
		return nil
	})
	return lags, err
}

// lag looks at the first record that waits. Offsets of which none holds a record, such as the marks that end a
// transaction or what compaction left, are no lag.
func (r *LagReader) lag(c Cluster, at groupPartition, next, end int64) (Lag, error) {
	lag := Lag{Topic: at.Topic, Partition: at.Partition}
	for next < end {
		if err := c.ctx.Err(); err != nil {
			return lag, err
		}
		f, err := c.fetch(at.TopicPartition, next, oneBatch)
		switch {
		case err != nil:
			return lag, fmt.Errorf("read first record of partition %d: %w", at.Partition, err)
		case len(f.records) > 0:
			lag.Records, lag.Age = end-next, r.age(at, f.records[0].Offset, f.records[0].Timestamp)
			return lag, nil
		case f.damage != nil:
			lag.Records, lag.Age = end-next, r.age(at, next, time.Time{})
			return lag, nil
		case f.next == next: // nothing there yet that the group may read
			return lag, nil
		}
		next = f.next
	}
	return lag, nil
}

// age is how long the record at the offset has been on the log.
func (r *LagReader) age(at groupPartition, offset int64, written time.Time) time.Duration {
	now := time.Now()
	if written.Unix() > 0 && !written.After(now) {
		return now.Sub(written)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[groupPartition]sighting)
	}
	if first, known := r.seen[at]; !known || first.offset != offset {
		r.seen[at] = sighting{offset, now}
	}
	return now.Sub(r.seen[at].at)
}
