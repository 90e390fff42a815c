package eventing

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
)

func (n *Node) addTopics(topics ...kafka.Topic) {
	n.topics = append(n.topics, topics...)
	for _, topic := range topics {
		n.written.WithLabelValues(topic.Name).Set(1)
	}
}

func namesOf(topics []kafka.Topic) []string {
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = topic.Name
	}
	return names
}

// lagClient answers within a scrape's timeout.
func (n *Node) lagClient() kafka.Config {
	client := n.client
	client.RequestTimeout = min(time.Second, client.WithDefaults().PublishTimeout)
	return client
}

// checkTopics refuses a topic that takes less than the largest event: a refused event would park its key.
func (n *Node) checkTopics(ctx context.Context) error {
	names, largest := namesOf(n.topics), n.setup.Config.Outbox.MaxEventBytes
	found, err := kafka.DescribeTopics(ctx, n.client, names...)
	if err != nil {
		return err
	}
	var refused relay.CheckError
	for _, name := range names {
		topic, exists := found[name]
		refused.RefuseIf(exists && topic.MaxBytes < largest, "max_event_bytes",
			fmt.Sprintf("%s takes %d bytes, an event may have %d", name, topic.MaxBytes, largest))
		if topic.CreateTime {
			n.Log.WarnContext(ctx, "a topic takes the times of records from their producers: run the command topics, else "+
				"events of a producer whose clock is behind are deleted too soon", "topic", name)
		}
	}
	return refused.Err()
}

// EnsureTopics creates missing topics and prints all on out: see [kafka.EnsureTopics].
func (c Config) EnsureTopics(ctx context.Context, out io.Writer, service string, topics []kafka.Topic) error {
	client := c.Client(service)
	if err := kafka.EnsureTopics(ctx, client, topics...); err != nil {
		return err
	}
	found, err := kafka.DescribeTopics(ctx, client, namesOf(topics)...)
	if err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	for _, topic := range topics {
		is := describeTopic(found[topic.Name].Partitions, found[topic.Name].Retention)
		if set := describeTopic(topic.Partitions, topic.Retention); is != set {
			is += "; it stays as it is, and is not given " + set
		}
		_, _ = fmt.Fprintf(out, "%s: %s\n", topic.Name, is)
	}
	return nil
}

func describeTopic(partitions int32, retention time.Duration) string {
	kept := config.Duration(retention)
	if retention < 0 {
		kept = "for ever"
	}
	return fmt.Sprintf("%d partitions, kept %s", partitions, kept)
}
