package eventing

import (
	"context"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
)

// Operable is a node as its operations see it.
type Operable struct{ *Node }

// Setup is what the node was opened with.
func (n Operable) Setup() Setup { return n.setup }

// Publisher is where republished events go.
func (n Operable) Publisher() relay.ContextPublisher { return n.publisher }

// EachConsumer names the consumers, their topics, and what replays their dead letters.
func (n Operable) EachConsumer(do func(name, topic string, replays *inbox.Replayer)) {
	for _, c := range n.consumers {
		do(c.Name, c.Topic, c.replays)
	}
}

// Partitions returns the number of partitions of each topic that the service writes to, without missing topics.
func (n Operable) Partitions(ctx context.Context) (map[string]int32, error) {
	found, err := kafka.DescribeTopics(ctx, n.setup.client, namesOf(n.topics)...)
	counts := make(map[string]int32, len(found))
	for name, topic := range found {
		counts[name] = topic.Partitions
	}
	return counts, err
}

// Behind returns the groups that have not read a topic to its end, with the number of records before each.
func (n Operable) Behind(ctx context.Context, topic string) (map[string]int64, error) {
	return kafka.GroupsBehind(ctx, n.setup.client, topic)
}
