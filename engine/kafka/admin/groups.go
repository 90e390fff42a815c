package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// GroupsBehind returns the consumer groups that have read from a topic and not to its end, with the number of records
// that lie before each: up to its committed offsets, in partitions where it has none from the beginning. It returns by
// the deadline of ctx, or after a few request timeouts.
func GroupsBehind(ctx context.Context, cfg kafka.Config, topic string) (map[string]int64, error) {
	behind := map[string]int64{}
	err := ask(ctx, cfg, func(c cluster) error {
		partitions, err := c.client.Partitions(topic)
		if err != nil {
			return err
		}
		oldest, newest, err := c.ends(topic)
		if err != nil {
			return err
		}
		groups, err := c.admin.ListConsumerGroups()
		if err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		for group := range groups {
			committed, err := c.reader.Committed(group, topic, partitions...)
			if err != nil {
				return err
			}
			reads, waiting := false, int64(0) // it reads other topics if it has no offset of this one
			for i := range newest {
				at := committed[partitions[i]].Offset
				reads = reads || at >= 0
				waiting += max(newest[i]-max(oldest[i], at), 0)
			}
			if reads && waiting > 0 {
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

// ErrGroupActive means that a consumer group has members.
var ErrGroupActive = errors.New("the consumer group has members")

// ForgetOffsets makes consumer groups start from the oldest records again. A group that does not exist is no error; one
// that has members is an [ErrGroupActive], and then groups before it may have been forgotten.
func ForgetOffsets(ctx context.Context, cfg kafka.Config, groups ...string) error {
	return ask(ctx, cfg, func(c cluster) error {
		for _, group := range slices.Sorted(slices.Values(groups)) {
			err := c.admin.DeleteConsumerGroup(group)
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
