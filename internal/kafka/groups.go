package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/event"
)

// Lag is a consumer group's lag in one topic-partition.
type Lag struct {
	Topic     string
	Partition int32
	// Records is how many offsets lie from the first waiting record to the end of the log.
	Records int64
	// Age is the age of that record, by its own time; 0 without one.
	Age time.Duration
}

// ReadLag returns a group's lag in every partition of a topic, or an error. A record is handled if the committed offset
// or the point is above it. Without points, or while their database does not answer, a group that keeps up lags by its
// last [ConsumerConfig.CommitInterval].
func ReadLag(ctx context.Context, cfg Config, group, topic string, points Points) (lags []Lag, err error) {
	err = Ask(ctx, cfg, "read lag of "+group+" in "+topic, func(c Cluster) error {
		found, err := c.groupOffsets(group, topic)
		if err != nil {
			return err
		}
		var handled map[int32]event.Point
		if points != nil {
			handled, _ = points.ReadPoints(ctx, topic)
		}
		lags = make([]Lag, len(found))
		for partition, at := range found {
			lag := &lags[partition]
			lag.Topic, lag.Partition = topic, int32(partition)
			next := at.next()
			if point := handled[lag.Partition].Next; point <= at.newest {
				next = max(next, point)
			}
			first, err := c.firstOf(topic, lag.Partition, next, at.newest)
			if err != nil {
				return err
			}
			if first != nil {
				lag.Records, lag.Age = at.newest-first.Offset, max(time.Since(first.Timestamp), 0)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lags, nil
}

type groupOffsets struct {
	committed      int64 // negative: none
	oldest, newest int64
}

func (o groupOffsets) next() int64 {
	if o.committed < o.oldest || o.committed > o.newest {
		return o.oldest
	}
	return o.committed
}

// groupOffsets asks for all partitions of the topic if none are given.
func (c Cluster) groupOffsets(group, topic string, partitions ...int32) (found []groupOffsets, err error) {
	if len(partitions) == 0 {
		if partitions, err = c.Partitions(topic); err != nil {
			return nil, err
		}
	}
	committed, err := c.Committed(group, topic, partitions)
	if err != nil {
		return nil, err
	}
	oldest, err := c.Offsets(topic, partitions, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	newest, err := c.Offsets(topic, partitions, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	for i := range partitions {
		found = append(found, groupOffsets{committed[i], oldest[i], newest[i]})
	}
	return found, nil
}

// GroupsBehind returns the groups that have read from a topic but not to its end, with their waiting offsets. It waits
// up to RequestTimeout for brokers that load their groups.
func GroupsBehind(ctx context.Context, cfg Config, topic string) (map[string]int64, error) {
	behind := map[string]int64{}
	err := Ask(ctx, cfg, "ask for groups behind", func(c Cluster) error {
		var groups []string
		err := c.settled(topic, func() (err error) {
			groups, err = c.groups()
			return err
		})
		if err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		for _, group := range groups {
			found, err := c.groupOffsets(group, topic)
			if err != nil {
				return err
			}
			reads, waiting := false, int64(0)
			for _, at := range found {
				reads = reads || at.committed >= 0
				waiting += at.newest - at.next()
			}
			if reads && waiting > 0 {
				behind[group] = waiting
			}
		}
		return nil
	})
	return behind, err
}

// groups asks every broker for its groups. Sarama's own question passes over a broker that is loading them.
func (c Cluster) groups() (names []string, err error) {
	for _, broker := range c.client.Brokers() {
		_ = broker.Open(c.client.Config()) // unless it is open
		answer, err := broker.ListGroups(&sarama.ListGroupsRequest{Version: 4})
		if err != nil {
			return nil, err
		}
		if answer.Err != sarama.ErrNoError {
			return nil, answer.Err
		}
		names = slices.AppendSeq(names, maps.Keys(answer.Groups))
	}
	return names, nil
}

// Committed returns the group's offsets, -1 where it has none.
func (c Cluster) Committed(group, topic string, partitions []int32) ([]int64, error) {
	offsets := slices.Repeat([]int64{-1}, len(partitions))
	answer, err := c.admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: partitions})
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return offsets, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", group, err)
	}
	for i, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		if block == nil {
			return nil, fmt.Errorf("fetch offsets of %s: %w", group, sarama.ErrIncompleteResponse)
		}
		if block.Err != sarama.ErrNoError {
			return nil, fmt.Errorf("fetch offsets of %s: %w", group, block.Err)
		}
		offsets[i] = block.Offset
	}
	return offsets, nil
}
