package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

// GroupsBehind returns the consumer groups that have read from a topic and not to its end, with the number of records
// that lie before each: up to its committed offsets, in partitions where it has none from the beginning. It returns by
// the deadline of ctx, or after a few request timeouts.
func GroupsBehind(ctx context.Context, cfg Config, topic string) (map[string]int64, error) {
	behind := map[string]int64{}
	err := Ask(ctx, cfg, "ask for groups behind", func(c Cluster) error {
		partitions, err := c.client.Partitions(topic)
		if err != nil {
			return err
		}
		oldest, newest, err := c.Ends(topic, sarama.ReadUncommitted)
		if err != nil {
			return err
		}
		groups, err := c.admin.ListConsumerGroups()
		if err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		for group := range groups {
			committed, err := c.Committed(group, topic, partitions...)
			if err != nil {
				return err
			}
			reads, waiting := false, int64(0) // it reads other topics if it has no offset of this one
			for i := range min(len(committed), len(newest)) {
				reads = reads || committed[i] >= 0
				waiting += max(newest[i]-max(oldest[i], committed[i]), 0)
			}
			if reads && waiting > 0 {
				behind[group] = waiting
			}
		}
		return nil
	})
	return behind, err
}

// Owners is who owns the partitions of a topic in a consumer group, as its coordinator says.
type Owners struct {
	// State is the group's: Stable, Empty, PreparingRebalance ...
	State string
	// By is the owner of each partition: its client id and its address. A partition without an owner is missing.
	By map[int32]string
}

// ReadOwners asks the group's coordinator. It is the same on every instance.
func ReadOwners(ctx context.Context, cfg Config, group, topic string) (Owners, error) {
	owners := Owners{By: make(map[int32]string)}
	err := Ask(ctx, cfg, "describe group "+group, func(c Cluster) error {
		found, err := c.admin.DescribeConsumerGroups([]string{group})
		switch {
		case err != nil:
			return err
		case len(found) != 1:
			return sarama.ErrIncompleteResponse
		case found[0].Err != sarama.ErrNoError:
			return found[0].Err
		}
		owners.State = found[0].State
		for _, member := range found[0].Members {
			assignment, err := member.GetMemberAssignment()
			if err != nil || assignment == nil {
				continue // it has none yet
			}
			for _, partition := range assignment.Topics[topic] {
				owners.By[partition] = member.ClientId + " at " + strings.TrimPrefix(member.ClientHost, "/")
			}
		}
		return nil
	})
	return owners, err
}

// Committed returns the offsets that a group has committed, of all partitions of the topic unless some are given. It is
// -1 where there is none.
func (c Cluster) Committed(group, topic string, partitions ...int32) (offsets []int64, err error) {
	if len(partitions) == 0 {
		if partitions, err = c.client.Partitions(topic); err != nil {
			return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
		}
	}
	offsets = slices.Repeat([]int64{-1}, len(partitions))
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
