package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

// Cluster answers one question; see [Ask]. Its connections end with the question.
type Cluster struct {
	ctx    context.Context //nolint:containedctx // of the question, not of the cluster
	cfg    Config
	client sarama.Client
	admin  sarama.ClusterAdmin
}

// Ask opens connections, calls question and closes them, also when ctx ends. Its errors begin with what. Each broker
// gets a share of the time of ctx, since one that never answers would use all of it.
func Ask(ctx context.Context, cfg Config, what string, question func(Cluster) error) error {
	cfg = cfg.WithDefaults()
	if deadline, ends := ctx.Deadline(); ends {
		share := time.Until(deadline) / time.Duration(max(len(cfg.Brokers), 1))
		cfg.RequestTimeout = max(min(cfg.RequestTimeout, share), time.Millisecond)
	}
	err := classify(connected(ctx, cfg, question))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func connected(ctx context.Context, cfg Config, question func(Cluster) error) (err error) {
	connections, end := context.WithCancel(ctx)
	defer end()
	settings := cfg.Client()
	settings.Metadata.Full = true // so sarama learns which broker is the controller
	settings.Admin.Retry.Max = 0
	settings.Metadata.Retry.Max = 0
	client, err := newClient(connections, cfg, settings)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return fmt.Errorf("find the controller: %w", err)
	}
	return question(Cluster{ctx, cfg, client, admin})
}

// newClient returns a client whose connections end with ctx.
func newClient(ctx context.Context, cfg Config, settings *sarama.Config) (sarama.Client, error) {
	dialer{ctx, cfg.RequestTimeout, cfg.TLS}.use(settings)
	return sarama.NewClient(cfg.Brokers, settings)
}

// Ping asks the cluster for its metadata.
func Ping(ctx context.Context, cfg Config) error {
	return Ask(ctx, cfg, "ping brokers", func(Cluster) error { return nil })
}

// moving are the answers while a partition changes its broker or is new, and while a broker loads its groups.
var moving = []error{
	sarama.ErrUnknownTopicOrPartition, sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition,
	sarama.ErrReplicaNotAvailable, sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch,
	sarama.ErrOffsetNotAvailable, sarama.ErrOffsetsLoadInProgress,
}

// settled repeats ask, for RequestTimeout at most, while the partition or group moves.
func (c Cluster) settled(topic string, ask func() error) error {
	pause := failure.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}
	for end := time.Now().Add(c.cfg.RequestTimeout); ; {
		err := ask()
		if !slices.ContainsFunc(moving, func(known error) bool { return errors.Is(err, known) }) || time.Now().After(end) {
			return err
		}
		if failure.Sleep(c.ctx, pause.Next()) != nil {
			return err
		}
		_ = c.client.RefreshMetadata(topic)
	}
}

// Partitions returns those of a topic. A missing topic's error wraps sarama.ErrUnknownTopicOrPartition.
func (c Cluster) Partitions(topic string) ([]int32, error) {
	partitions, err := c.client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	return partitions, nil
}

// Offsets returns one offset per partition: sarama.OffsetOldest, sarama.OffsetNewest, or the first of a time in
// milliseconds since 1970, -1 without one. It waits up to RequestTimeout while a partition moves.
func (c Cluster) Offsets(topic string, partitions []int32, which int64) ([]int64, error) {
	offsets := make([]int64, len(partitions))
	err := c.settled(topic, func() error {
		offsetOf := c.listOffsets(map[string][]int32{topic: partitions}, which)
		for i, partition := range partitions {
			offset, err := offsetOf(topic, partition)
			if err != nil {
				return fmt.Errorf("of partition %d: %w", partition, err)
			}
			offsets[i] = offset
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	return offsets, nil
}

// listOffsets asks once for all topics, so that a silent broker costs one timeout.
func (c Cluster) listOffsets(
	partitions map[string][]int32, which int64,
) (offsetOf func(topic string, partition int32) (int64, error)) {
	wanted := map[string]map[int32]int64{}
	for topic, numbers := range partitions {
		wanted[topic] = map[int32]int64{}
		for _, partition := range numbers {
			wanted[topic][partition] = which
		}
	}
	answer, err := c.admin.ListOffsets(wanted, nil)
	return func(topic string, partition int32) (int64, error) {
		found := answer[topic][partition]
		switch {
		case found == nil:
			return 0, cmp.Or(err, sarama.ErrIncompleteResponse)
		case found.Err != nil && !errors.Is(found.Err, sarama.ErrNoError):
			return 0, found.Err
		}
		return found.Offset, nil
	}
}
