package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

// EnsureTopics creates the topics that do not exist and waits until each partition has a leader. Existing topics are
// left as they are, retention and number of partitions included: adding partitions would move keys past their earlier
// events. In all of them the broker writes the time of a record: by a producer's clock that is wrong, retention would
// delete it at once, or the broker would refuse it. Every topic is tried, and all errors are reported. Calling it from
// several processes at once is fine.
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
	if !ValidTopic(topic.Name) {
		return fmt.Errorf("%w: %q", ErrInvalidTopic, topic.Name)
	}
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
	if errors.Is(err, sarama.ErrTopicAlreadyExists) {
		err = c.stampByBroker(topic.Name)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", topic.Name, err)
	}
	return c.awaitLeaders(topic)
}

// stampByBroker makes the broker write the time of a topic's records, where producers do.
func (c Cluster) stampByBroker(topic string) error {
	settings, err := c.settings(topic)
	if err != nil || !settings[topic].CreateTime {
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

// awaitLeaders polls, since nothing tells when a new topic's metadata has reached every broker.
func (c Cluster) awaitLeaders(topic Topic) error {
	for {
		found, err := c.admin.DescribeTopics([]string{topic.Name})
		if err == nil && len(found) == 1 && found[0].Err == sarama.ErrNoError {
			if !slices.ContainsFunc(found[0].Partitions, func(p *sarama.PartitionMetadata) bool { return p.Leader < 0 }) {
				return nil
			}
		}
		if failure.Sleep(c.ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("wait for the leaders of %s: %w", topic.Name, c.ctx.Err())
		}
	}
}

// PartitionCounts asks how many partitions the topics have. A topic that does not exist is missing in the answer. It
// returns by the deadline of ctx, or after a few request timeouts.
func PartitionCounts(ctx context.Context, cfg Config, topics ...string) (map[string]int32, error) {
	counts := make(map[string]int32, len(topics))
	if len(topics) == 0 {
		return counts, nil // to the broker, none means all
	}
	err := Ask(ctx, cfg, "ask for partitions", func(c Cluster) error {
		found, err := c.admin.DescribeTopics(topics)
		for _, topic := range found {
			if topic.Err == sarama.ErrUnknownTopicOrPartition {
				continue
			}
			if topic.Err != sarama.ErrNoError {
				return fmt.Errorf("describe %s: %w", topic.Name, topic.Err)
			}
			counts[topic.Name] = int32(len(topic.Partitions))
		}
		return err
	})
	return counts, err
}

// TopicSettings is how a topic is configured now.
type TopicSettings struct {
	// Retention is how long the broker keeps the records; negative: for ever, as in a topic that is only compacted. A
	// record may outlive it: the broker drops whole segments, and never the active one.
	Retention time.Duration
	// CreateTime says that producers write the time of a record, and not the broker; see [EnsureTopics].
	CreateTime bool
	// MaxBytes is the largest batch, and so the largest record with its frame, that the topic takes.
	MaxBytes int
}

const (
	retentionSetting = "retention.ms"
	cleanupSetting   = "cleanup.policy"
	maxBytesSetting  = "max.message.bytes"
	timestampSetting = "message.timestamp.type"
	logAppendTime    = "LogAppendTime"
)

// ReadTopicSettings asks how the topics are configured. A topic that does not exist is missing in the answer. It
// returns by the deadline of ctx, or after a few request timeouts.
func ReadTopicSettings(
	ctx context.Context, cfg Config, topics ...string,
) (found map[string]TopicSettings, err error) {
	if len(topics) == 0 {
		return map[string]TopicSettings{}, nil
	}
	err = Ask(ctx, cfg, "ask for settings of topics", func(c Cluster) error {
		found, err = c.settings(topics...)
		return err
	})
	return found, err
}

func (c Cluster) settings(topics ...string) (map[string]TopicSettings, error) {
	wanted := make([]*sarama.ConfigResource, len(topics))
	for i, topic := range topics {
		wanted[i] = &sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic,
			ConfigNames: []string{retentionSetting, cleanupSetting, maxBytesSetting, timestampSetting},
		}
	}
	answer := make(map[string]TopicSettings, len(topics))
	found, err := c.admin.DescribeConfigs(wanted, sarama.DescribeConfigsOptions{})
	for _, topic := range found {
		if topic.ErrorCode == sarama.ErrUnknownTopicOrPartition {
			continue
		}
		if topic.ErrorCode != sarama.ErrNoError {
			return nil, fmt.Errorf("describe %s: %w", topic.Name, topic.ErrorCode)
		}
		if answer[topic.Name], err = parseSettings(topic.Configs); err != nil {
			return nil, fmt.Errorf("read settings of %s: %w", topic.Name, err)
		}
	}
	return answer, err
}

func parseSettings(configs []sarama.ConfigEntry) (s TopicSettings, err error) {
	values := map[string]string{}
	for _, setting := range configs {
		values[setting.Name] = setting.Value
	}
	ms, err := strconv.ParseInt(values[retentionSetting], 10, 64)
	if err != nil {
		return s, fmt.Errorf("parse %s: %w", retentionSetting, err)
	}
	s.Retention = time.Duration(ms) * time.Millisecond
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) || values[cleanupSetting] == "compact" {
		s.Retention = -1
	}
	s.CreateTime = values[timestampSetting] != logAppendTime
	if s.MaxBytes, err = strconv.Atoi(values[maxBytesSetting]); err != nil {
		return s, fmt.Errorf("parse %s: %w", maxBytesSetting, err)
	}
	return s, nil
}
