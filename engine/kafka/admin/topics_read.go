package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// PartitionCounts asks how many partitions the topics have. A topic that does not exist is missing in the answer. It
// returns by the deadline of ctx, or after a few request timeouts.
func PartitionCounts(ctx context.Context, cfg kafka.Config, topics ...string) (map[string]int32, error) {
	counts := make(map[string]int32, len(topics))
	if len(topics) == 0 {
		return counts, nil // to the broker, none means all
	}
	err := askCluster(ctx, cfg, func(_ sarama.Client, admin sarama.ClusterAdmin) error {
		found, err := admin.DescribeTopics(topics)
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
	if err != nil {
		return nil, fmt.Errorf("ask for partitions: %w", err)
	}
	return counts, nil
}

// TopicRetention asks how long the broker keeps the records of the topics, as it is configured now; negative: for ever,
// as in a topic that is only compacted. A topic that does not exist is missing in the answer. It returns by the
// deadline of ctx, or after a few request timeouts.
//
// A record may outlive it: the broker drops whole segments, and never the active one.
func TopicRetention(ctx context.Context, cfg kafka.Config, topics ...string) (map[string]time.Duration, error) {
	kept, err := askSettings(ctx, cfg, topics, retentionOf, retentionSetting, cleanupSetting)
	if err != nil {
		return nil, fmt.Errorf("ask for retention: %w", err)
	}
	return kept, nil
}

// TopicMaxBytes asks for the largest batch, and so the largest record with its frame, that the topics take, as they are
// configured now. A topic that does not exist is missing in the answer. It returns as [TopicRetention] does.
func TopicMaxBytes(ctx context.Context, cfg kafka.Config, topics ...string) (map[string]int, error) {
	sizes, err := askSettings(ctx, cfg, topics, maxBytesOf, maxBytesSetting)
	if err != nil {
		return nil, fmt.Errorf("ask for sizes: %w", err)
	}
	return sizes, nil
}

// askSettings reads what the named settings of each topic mean.
func askSettings[T any](
	ctx context.Context, cfg kafka.Config, topics []string, read func(map[string]string) (T, error), names ...string,
) (map[string]T, error) {
	answer := make(map[string]T, len(topics))
	if len(topics) == 0 {
		return answer, nil
	}
	err := askCluster(ctx, cfg, func(_ sarama.Client, admin sarama.ClusterAdmin) error {
		wanted := make([]*sarama.ConfigResource, len(topics))
		for i, topic := range topics {
			wanted[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: names}
		}
		found, err := admin.DescribeConfigs(wanted, sarama.DescribeConfigsOptions{})
		for _, topic := range found {
			if topic.ErrorCode == sarama.ErrUnknownTopicOrPartition {
				continue
			}
			if topic.ErrorCode != sarama.ErrNoError {
				return fmt.Errorf("describe %s: %w", topic.Name, topic.ErrorCode)
			}
			values := map[string]string{}
			for _, setting := range topic.Configs {
				values[setting.Name] = setting.Value
			}
			if answer[topic.Name], err = read(values); err != nil {
				return fmt.Errorf("read settings of %s: %w", topic.Name, err)
			}
		}
		return err
	})
	return answer, err
}

const (
	retentionSetting = "retention.ms"
	cleanupSetting   = "cleanup.policy"
	maxBytesSetting  = "max.message.bytes"
)

func retentionOf(value map[string]string) (time.Duration, error) {
	ms, err := strconv.ParseInt(value[retentionSetting], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", retentionSetting, err)
	}
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) || value[cleanupSetting] == "compact" {
		return -1, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func maxBytesOf(value map[string]string) (int, error) {
	n, err := strconv.Atoi(value[maxBytesSetting])
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", maxBytesSetting, err)
	}
	return n, nil
}

// askCluster opens a short-lived connection for a question.
func askCluster(ctx context.Context, cfg kafka.Config, ask func(sarama.Client, sarama.ClusterAdmin) error) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	settings := within(ctx, cfg)
	settings.Metadata.Full = true
	settings.Metadata.Retry.Max = 0
	settings.Admin.Retry.Max = 0
	client, err := sarama.NewClient(cfg.Brokers, settings)
	if err != nil {
		return fmt.Errorf("connect to brokers: %w", err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return errors.Join(fmt.Errorf("connect to brokers: %w", err), client.Close())
	}
	return errors.Join(ask(client, admin), admin.Close()) // which closes the client
}
