package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// Topic is a wanted topic.
type Topic struct {
	Name       string
	Partitions int32
	// Retention is how long records are kept; negative: for ever; 0: the broker's default.
	Retention time.Duration
	// ReplicationFactor defaults to 1, which fits only a development cluster.
	ReplicationFactor int16
}

// EnsureTopics creates missing topics and waits up to RequestTimeout for the leaders of each. An existing topic keeps
// its retention and partitions. In each the broker sets the times of records: by a producer's wrong clock, retention
// would delete them early. It returns all errors. Processes may call it concurrently.
func EnsureTopics(ctx context.Context, cfg Config, topics ...Topic) error {
	return Ask(ctx, cfg, "ensure topics", func(c Cluster) error {
		var problems []error
		for _, topic := range topics {
			problems = append(problems, c.ensure(topic))
		}
		return errors.Join(problems...)
	})
}

func (c Cluster) ensure(topic Topic) error {
	detail := &sarama.TopicDetail{
		NumPartitions:     topic.Partitions,
		ReplicationFactor: max(topic.ReplicationFactor, 1),
		ConfigEntries:     map[string]*string{timestampSetting: new(logAppendTime)},
	}
	if topic.Retention != 0 {
		ms := "-1"
		if topic.Retention > 0 {
			ms = strconv.FormatInt(topic.Retention.Milliseconds(), 10)
		}
		detail.ConfigEntries[retentionSetting] = &ms
	}
	err := c.admin.CreateTopic(topic.Name, detail, false)
	exists := errors.Is(err, sarama.ErrTopicAlreadyExists)
	if err == nil || exists {
		err = c.settled(topic.Name, func() error { return c.client.RefreshMetadata(topic.Name) })
	}
	if err == nil && exists {
		err = c.stampByBroker(topic.Name)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", topic.Name, err)
	}
	return nil
}

func (c Cluster) stampByBroker(topic string) error {
	state, err := c.describe(topic)
	if err != nil || !state.CreateTime {
		return err
	}
	err = c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		timestampSetting: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: new(logAppendTime)},
	}, false)
	if err != nil {
		return fmt.Errorf("set %s: %w", timestampSetting, err)
	}
	return nil
}

// TopicState is an existing topic.
type TopicState struct {
	Partitions int32
	// Retention is how long the broker keeps records; negative: for ever, as in a topic that is only compacted.
	Retention time.Duration
	// CreateTime reports that producers set the time of a record; see [EnsureTopics].
	CreateTime bool
	// MaxBytes is the largest batch that the topic takes.
	MaxBytes int
}

const (
	retentionSetting = "retention.ms"
	cleanupSetting   = "cleanup.policy"
	maxBytesSetting  = "max.message.bytes"
	timestampSetting = "message.timestamp.type"
	logAppendTime    = "LogAppendTime"
)

// DescribeTopics leaves out missing topics.
func DescribeTopics(ctx context.Context, cfg Config, topics ...string) (map[string]TopicState, error) {
	found := make(map[string]TopicState, len(topics))
	err := Ask(ctx, cfg, "describe topics", func(c Cluster) error {
		for _, topic := range topics {
			state, err := c.describe(topic)
			if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				continue
			}
			if err != nil {
				return fmt.Errorf("describe %s: %w", topic, err)
			}
			found[topic] = state
		}
		return nil
	})
	return found, err
}

func (c Cluster) describe(topic string) (s TopicState, err error) {
	partitions, err := c.Partitions(topic)
	if err != nil {
		return s, err
	}
	asked := []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}
	found, err := c.admin.DescribeConfigs(asked, sarama.DescribeConfigsOptions{})
	switch {
	case err != nil:
		return s, err
	case len(found) != 1:
		return s, sarama.ErrIncompleteResponse
	case found[0].ErrorCode != sarama.ErrNoError:
		return s, found[0].ErrorCode
	}
	values := map[string]string{}
	for _, setting := range found[0].Configs {
		values[setting.Name] = setting.Value
	}
	ms, noRetention := strconv.ParseInt(values[retentionSetting], 10, 64)
	maxBytes, noSize := strconv.Atoi(values[maxBytesSetting])
	s = TopicState{
		Partitions: int32(len(partitions)), MaxBytes: maxBytes, CreateTime: values[timestampSetting] != logAppendTime,
		Retention: time.Duration(ms) * time.Millisecond,
	}
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) || values[cleanupSetting] == "compact" {
		s.Retention = -1
	}
	return s, errors.Join(noRetention, noSize)
}
