package eventing

import (
	"context"

	"example.com/twinbox/internal/kafka"
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
// an operator confirm it.
func (t topics) Partitions(ctx context.Context) (map[string]int32, error) {
	return kafka.PartitionCounts(ctx, t.client, t.names...)
}

// Behind are the consumer groups that have not read the topic to its end.
func (t topics) Behind(ctx context.Context, topic string) (map[string]int64, error) {
	return kafka.GroupsBehind(ctx, t.client, topic)
}
