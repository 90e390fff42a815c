package eventing

import (
	"context"
	"slices"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/admin"
)

// topics asks the broker about the topics that the service writes to.
type topics struct {
	client kafka.Config
	names  []string
}

func topicsOf(s Setup) topics {
	t := topics{client: s.Config.Client(s.Service), names: make([]string, len(s.Topics))}
	for i, topic := range s.Topics {
		t.names[i] = topic.Name
	}
	return t
}

// Partitions lets the relay hold a topic back whose number of partitions is not the one its keys are spread over, and
// an operator confirm it. The others are topics that the service no longer writes to, such as those of an earlier name.
func (t topics) Partitions(ctx context.Context, others ...string) (map[string]int32, error) {
	names := slices.Concat(t.names, others)
	slices.Sort(names)
	return admin.PartitionCounts(ctx, t.client, slices.Compact(names)...)
}
