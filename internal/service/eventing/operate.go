package eventing

import (
	"context"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// Operable is a node for its operations.
type Operable struct{ *Node }

// Setup returns what the node was opened with.
func (n Operable) Setup() Setup { return n.setup }

// Publisher publishes republished events, and reads records.
func (n Operable) Publisher() *kafka.Publisher { return n.publisher }

// EachConsumer calls do with each consumer and its replayer of dead letters.
func (n Operable) EachConsumer(do func(name, topic string, replays *inbox.Replayer)) {
	for _, c := range n.consumers {
		do(c.Name, c.Topic, c.replays)
	}
}

// Partitions counts the partitions of each topic that the service writes to, without missing topics.
func (n Operable) Partitions(ctx context.Context) (map[string]int32, error) {
	found, err := kafka.DescribeTopics(ctx, n.client, namesOf(n.topics)...)
	counts := make(map[string]int32, len(found))
	for name, topic := range found {
		counts[name] = topic.Partitions
	}
	return counts, err
}

// Behind returns the groups that have not read a topic to its end, and how many records each lacks.
func (n Operable) Behind(ctx context.Context, topic string) (map[string]int64, error) {
	return kafka.GroupsBehind(ctx, n.client, topic)
}
