package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// EnsureTopics creates the topics that do not exist and waits until each partition has a leader. Existing topics are
// left as they are, retention and number of partitions included: adding partitions would move keys past their earlier
// events. Every topic is tried, and all errors are reported. Calling it from several processes at once is fine.
func EnsureTopics(ctx context.Context, cfg kafka.Config, topics ...kafka.Topic) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configure topics: %w", err)
	}
	admin, err := sarama.NewClusterAdmin(cfg.Brokers, settings(cfg))
	if err != nil {
		return fmt.Errorf("connect to brokers: %w", err)
	}
	var problems []error
	for _, topic := range topics {
		if err := ensure(ctx, admin, topic); err != nil {
			problems = append(problems, fmt.Errorf("ensure topic: %w", err))
		}
	}
	return errors.Join(append(problems, admin.Close())...)
}

func ensure(ctx context.Context, admin sarama.ClusterAdmin, topic kafka.Topic) error {
	if !kafka.ValidTopic(topic.Name) {
		return fmt.Errorf("%w: %q", kafka.ErrInvalidTopic, topic.Name)
	}
	detail := &sarama.TopicDetail{
		NumPartitions:     topic.Partitions,
		ReplicationFactor: max(topic.ReplicationFactor, 1),
		ConfigEntries:     map[string]*string{},
	}
	if topic.Retention != 0 {
		ms := "-1"
		if topic.Retention > 0 {
			ms = strconv.FormatInt(topic.Retention.Milliseconds(), 10)
		}
		detail.ConfigEntries[retentionSetting] = &ms
	}
	err := admin.CreateTopic(topic.Name, detail, false)
	if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return fmt.Errorf("create %s: %w", topic.Name, err)
	}
	return awaitLeaders(ctx, admin, topic)
}

// awaitLeaders polls, since nothing tells when a new topic's metadata has reached every broker.
func awaitLeaders(ctx context.Context, admin sarama.ClusterAdmin, topic kafka.Topic) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		found, err := admin.DescribeTopics([]string{topic.Name})
		if err == nil && len(found) == 1 && found[0].Err == sarama.ErrNoError {
			if !slices.ContainsFunc(found[0].Partitions, func(p *sarama.PartitionMetadata) bool { return p.Leader < 0 }) {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the leaders of %s: %w", topic.Name, ctx.Err())
		}
	}
}

// settings are those of short-lived clients. They read the metadata in full: that is how sarama learns which broker is
// the controller.
func settings(c kafka.Config) *sarama.Config {
	cfg := c.Client()
	cfg.Metadata.Full = true
	return cfg
}

// Ping asks the cluster for its metadata. It returns by the deadline of ctx.
func Ping(ctx context.Context, cfg kafka.Config) error {
	err := askCluster(ctx, cfg, func(client sarama.Client, _ sarama.ClusterAdmin) error {
		_, err := client.RefreshController()
		return err
	})
	if err != nil {
		return fmt.Errorf("ping brokers: %w", err)
	}
	return nil
}
