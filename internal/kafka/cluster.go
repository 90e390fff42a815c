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
func Ask(ctx context.Context, cfg Config, what string, question func(Cluster) error) (err error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("%s: configure: %w", what, err)
	}
	if deadline, ends := ctx.Deadline(); ends {
		share := time.Until(deadline) / time.Duration(len(cfg.Brokers))
		cfg.RequestTimeout = max(min(cfg.RequestTimeout, share), time.Millisecond)
	}
	connected, end := context.WithCancel(ctx)
	defer end()
	settings := cfg.Client()
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, dialer{connected, cfg.RequestTimeout}
	settings.Metadata.Full = true // that is how sarama learns which broker is the controller
	settings.Admin.Retry.Max = 0
	settings.Metadata.Retry.Max = 0
	c := Cluster{ctx: ctx, cfg: cfg}
	defer func() {
		if c.client != nil {
			err = errors.Join(err, c.client.Close())
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		err = fmt.Errorf("%s: %w", what, err)
	}()
	if c.client, err = sarama.NewClient(cfg.Brokers, settings); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if c.admin, err = sarama.NewClusterAdminFromClient(c.client); err != nil {
		return fmt.Errorf("find the controller: %w", err)
	}
	return question(c)
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

// Offsets returns one offset of each partition of a topic, in their order: sarama.OffsetOldest, sarama.OffsetNewest, or
// the first of a time in milliseconds since 1970, -1 without one. With sarama.ReadCommitted the newest lies before the
// first open transaction. While a partition moves to another broker it asks again, for RequestTimeout at most.
func (c Cluster) Offsets(topic string, which int64, level sarama.IsolationLevel) ([]int64, error) {
	partitions, err := c.client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	wanted := make(map[int32]int64, len(partitions))
	for _, partition := range partitions {
		wanted[partition] = which
	}
	offsets := make([]int64, len(partitions))
	err = c.settled(topic, func() error {
		answer, err := c.admin.ListOffsets(map[string]map[int32]int64{topic: wanted},
			&sarama.ListOffsetsOptions{IsolationLevel: level})
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

// errGrown is of an answer that does not tell of every partition, since the topic was given more in between.
var errGrown = fmt.Errorf("the topic was given more partitions: %w", sarama.ErrIncompleteResponse)

// Ends returns the first offset of each partition and the one behind its last record; see [Cluster.Offsets]. A topic
// that does not exist has none. If the topic is given more partitions between the two questions, the error wraps
// sarama.ErrIncompleteResponse, and one of the slices is longer.
func (c Cluster) Ends(topic string, level sarama.IsolationLevel) (oldest, newest []int64, err error) {
	oldest, err = c.Offsets(topic, sarama.OffsetOldest, level)
	if err == nil {
		newest, err = c.Offsets(topic, sarama.OffsetNewest, level)
	}
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return nil, nil, nil // there is no such topic
	case err == nil && len(oldest) != len(newest):
		err = errGrown
	}
	return oldest, newest, err
}
