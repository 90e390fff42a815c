package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// Owners is a coordinator's view of a group and a topic.
type Owners struct {
	// State is the group's: [Stable], Empty, PreparingRebalance ...
	State string
	// By is each partition's owner: client id and address. A partition without an owner is missing.
	By map[int32]string
	// Partitions is how many the topic has.
	Partitions int
}

// Stable is the state of a group that is not rebalancing.
const Stable = "Stable"

// ReadOwners asks the group's coordinator.
func ReadOwners(ctx context.Context, cfg Config, group, topic string) (owners Owners, err error) {
	err = Ask(ctx, cfg, "describe group "+group, func(c Cluster) error {
		partitions, err := c.Partitions(topic)
		if err != nil {
			return err
		}
		found, err := c.admin.DescribeConsumerGroups([]string{group})
		switch {
		case err != nil:
			return err
		case len(found) != 1:
			return sarama.ErrIncompleteResponse
		case found[0].Err != sarama.ErrNoError:
			return found[0].Err
		}
		owners = Owners{State: found[0].State, By: map[int32]string{}, Partitions: len(partitions)}
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

// ownerWatch has the last membership in which each partition had an owner, and in which some had none.
type ownerWatch struct{ whole, lacking time.Time }

// checkOwners joins the group anew if partitions have no owner. A member gives partitions back in one rebalance, and
// begins the next one, which gives them to another. If it is killed in between, its successor with the same instance id
// begins none: the coordinator returns the assignment of the one before.
func (c *Consumer) checkOwners(ctx context.Context, seen *ownerWatch) {
	joined := c.memberSince()
	if c.cfg.InstanceID == "" || joined.IsZero() || joined.Equal(seen.whole) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	owners, err := ReadOwners(ctx, c.cfg.Config, c.cfg.Group, c.topic)
	unowned := owners.Partitions - len(owners.By)
	switch {
	case err != nil || owners.State != Stable || !joined.Equal(c.memberSince()):
	case unowned == 0:
		seen.whole = joined
	case !joined.Equal(seen.lacking): // the next rebalance may be about to begin
		seen.lacking = joined
	default:
		c.log.Warn("partitions have no owner, joining the group anew", "partitions", unowned)
		if err := c.leaveGroup(); err != nil {
			c.log.Warn("leave the group", "error", err)
		}
	}
}
