package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

// Cluster answers one question, over connections that end with it; see [Ask].
type Cluster struct {
	ctx    context.Context //nolint:containedctx // of the question, not of the cluster
	cfg    Config
	client sarama.Client
	admin  sarama.ClusterAdmin
}

// Ask opens connections, calls question and closes them. Its errors begin with what, the name of the question. The
// connections are also closed when ctx ends, and each broker gets its share of the time until then: a broker that
// accepts and never answers would otherwise use up all of it.
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
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, dialer{connections, cfg.RequestTimeout}
	settings.Metadata.Full = true // that is how sarama learns which broker is the controller
	settings.Admin.Retry.Max = 0
	settings.Metadata.Retry.Max = 0
	client, err := sarama.NewClient(cfg.Brokers, settings)
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

// dialer opens connections that are closed when its context ends.
type dialer struct {
	ctx     context.Context //nolint:containedctx // of the connections
	timeout time.Duration
}

// Dial is the method that sarama calls in the place of its own dialer.
func (d dialer) Dial(network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: d.timeout}).DialContext(d.ctx, network, addr)
	if err == nil {
		context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

// Ping asks the cluster for its metadata. It returns by the deadline of ctx.
func Ping(ctx context.Context, cfg Config) error {
	return Ask(ctx, cfg, "ping brokers", func(Cluster) error { return nil })
}

// moving are the answers while a partition goes from one broker to another, or was made a moment ago: the brokers learn
// of it one after the other, and a client that asks for metadata may be told of a leader that does not know it yet.
var moving = []error{
	sarama.ErrUnknownTopicOrPartition, sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition,
	sarama.ErrReplicaNotAvailable, sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch,
	sarama.ErrOffsetNotAvailable,
}

// settled asks again, for RequestTimeout at most, while the answer is that the partition moves.
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
		_ = c.client.RefreshMetadata(topic) // what the next question meets says more
	}
}

// Partitions are those of a topic. Of one that does not exist the error wraps sarama.ErrUnknownTopicOrPartition.
func (c Cluster) Partitions(topic string) ([]int32, error) {
	partitions, err := c.client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	return partitions, nil
}

// Offsets returns one offset of each partition, in their order: sarama.OffsetOldest, sarama.OffsetNewest, or the first
// of a time in milliseconds since 1970, -1 without one. While a partition moves to another broker it asks again, for
// RequestTimeout at most.
func (c Cluster) Offsets(topic string, partitions []int32, which int64) ([]int64, error) {
	wanted := make(map[int32]int64, len(partitions))
	for _, partition := range partitions {
		wanted[partition] = which
	}
	offsets := make([]int64, len(partitions))
	err := c.settled(topic, func() error {
		answer, err := c.admin.ListOffsets(map[string]map[int32]int64{topic: wanted}, nil)
		if err != nil {
			return err
		}
		for i, partition := range partitions {
			found := answer[topic][partition]
			if !errors.Is(found.Err, sarama.ErrNoError) {
				return fmt.Errorf("of partition %d: %w", partition, found.Err)
			}
			offsets[i] = found.Offset
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	return offsets, nil
}
