package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// GroupsBehind returns the consumer groups that have read from a topic and not to its end, with the number of records
// that lie before each: up to its committed offsets, in partitions where it has none from the beginning. It returns by
// the deadline of ctx, or after a few request timeouts.
func GroupsBehind(ctx context.Context, cfg kafka.Config, topic string) (map[string]int64, error) {
	behind := map[string]int64{}
	err := askCluster(ctx, cfg, func(client sarama.Client, admin sarama.ClusterAdmin) error {
		ends, err := readEnds(client, topic)
		if err != nil {
			return err
		}
		groups, err := admin.ListConsumerGroups()
		if err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		for group := range groups {
			waiting, err := waitingFor(admin, group, topic, ends)
			if err != nil {
				return fmt.Errorf("read offsets of %s: %w", group, err)
			}
			if waiting > 0 {
				behind[group] = waiting
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for groups behind: %w", err)
	}
	return behind, nil
}

// waitingFor counts nothing for a group that has committed no offset of the topic: it reads others.
func waitingFor(admin sarama.ClusterAdmin, group, topic string, ends map[int32]logEnds) (waiting int64, err error) {
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: slices.Collect(maps.Keys(ends))})
	if err != nil {
		return 0, err
	}
	reads := false
	for p, end := range ends {
		at := end.oldest
		if block := answer.GetBlock(topic, p); block != nil && block.Offset >= 0 {
			at, reads = max(at, block.Offset), true
		}
		waiting += max(end.newest-at, 0)
	}
	if !reads {
		return 0, nil
	}
	return waiting, nil
}

// ErrGroupActive means that a consumer group has members.
var ErrGroupActive = errors.New("the consumer group has members")

// ForgetOffsets makes consumer groups start from the oldest records again. A group that does not exist is no error; one
// that has members is an [ErrGroupActive], and then groups before it may have been forgotten.
func ForgetOffsets(ctx context.Context, cfg kafka.Config, groups ...string) error {
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
