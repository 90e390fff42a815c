package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"
)

// GroupsBehind returns the consumer groups that have read from a topic and not to its end, with the number of records
// that lie before each: up to its committed offsets, in partitions where it has none from the beginning. It returns by
// the deadline of ctx, or after a few request timeouts.
func GroupsBehind(ctx context.Context, cfg Config, topic string) (map[string]int64, error) {
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
