package eventing

import (
	"context"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// Operable is a node for its operations.
type Operable struct{ *Node }

func (n Operable) Setup() Setup { return n.setup }

func (n Operable) Publisher() *kafka.Publisher { return n.publisher }

func (n Operable) EachConsumer(do func(name, topic string, replays *inbox.Replayer)) {
	for _, c := range n.consumers {
		do(c.Name, c.Topic, c.replays)
	}
}

// Partitions counts the partitions of the topics that the service writes to, without missing topics.
func (n Operable) Partitions(ctx context.Context) (map[string]int32, error) {
	found, err := kafka.DescribeTopics(ctx, n.client, namesOf(n.topics)...)
	counts := make(map[string]int32, len(found))
	for name, topic := range found {
		counts[name] = topic.Partitions
	}
	return counts, err
}

// Behind returns how many records of a topic each group has not read.
func (n Operable) Behind(ctx context.Context, topic string) (map[string]int64, error) {
	return kafka.GroupsBehind(ctx, n.client, topic)
}
