package kafka

import (
	"context"
	"strings"

	"github.com/IBM/sarama"
)

// Owners is a coordinator's view of a group and a topic.
type Owners struct {
	// State is the group's: Stable, Empty, PreparingRebalance ...
	State string
	// By is each partition's owner: client id and address. A partition without an owner is missing.
	By map[int32]string
}

// ReadOwners asks the group's coordinator: the answer is the same on every instance.
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
