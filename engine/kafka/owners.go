package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
)

// Owners is who owns the partitions of a topic in a consumer group, as its coordinator says.
type Owners struct {
	// State is the group's: Stable, Empty, PreparingRebalance ...
	State string
	// By is the owner of each partition: its client id and its address. A partition without an owner is missing.
	By map[int32]string
}

// Owners asks the group's coordinator. It is the same on every instance.
func (r *LagReader) Owners(ctx context.Context, group, topic string) (Owners, error) {
	owners := Owners{By: make(map[int32]string)}
	client, err := r.reader.connected()
	if err != nil {
		return owners, err
	}
	if err := ctx.Err(); err != nil {
		return owners, fmt.Errorf("describe group %s: %w", group, context.Cause(ctx))
	}
	description, err := r.reader.describe(client, group)
	if err != nil {
		return owners, fmt.Errorf("describe group %s: %w", group, err)
	}
	owners.State = description.State
	for _, member := range description.Members {
		assignment, err := member.GetMemberAssignment()
		if err != nil || assignment == nil {
			continue // it has none yet
		}
		for _, partition := range assignment.Topics[topic] {
			owners.By[partition] = member.ClientId + " at " + strings.TrimPrefix(member.ClientHost, "/")
		}
	}
	return owners, nil
}

func (r *batchReader) describe(client sarama.Client, group string) (*sarama.GroupDescription, error) {
	coordinator, end, err := r.turn(func() (*sarama.Broker, error) { return client.Coordinator(group) })
	if err != nil {
		return nil, err
	}
	defer end()
	answer, err := coordinator.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 1, Groups: []string{group}})
	if err != nil {
		_ = coordinator.Close() // it is opened again when it is needed
	}
	switch {
	case err == nil && len(answer.Groups) != 1:
		err = sarama.ErrIncompleteResponse
	case err == nil && answer.Groups[0].Err != sarama.ErrNoError:
		err = answer.Groups[0].Err
	}
	if err != nil {
		_ = client.RefreshCoordinator(group) // the next question goes to the right one
		return nil, err
	}
	return answer.Groups[0], nil
}
