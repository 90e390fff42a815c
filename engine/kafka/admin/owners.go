package admin

import (
	"context"
	"fmt"
	"strings"
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
	if err := ctx.Err(); err != nil {
		return owners, fmt.Errorf("describe group %s: %w", group, context.Cause(ctx))
	}
	description, err := r.reader.Describe(group)
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
