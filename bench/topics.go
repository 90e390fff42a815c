package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
)

const partitions = 6

// kafkaAdmin makes, reads and removes topics.
type kafkaAdmin struct {
	cfg    kafka.Config
	client sarama.Client
	admin  sarama.ClusterAdmin
	prefix string // keeps this run's topics apart from those of another one on the same broker
	made   []string
}

func newKafkaAdmin(brokers []string) (*kafkaAdmin, error) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.Fetch.Default = 4 << 20
	cfg.Consumer.MaxWaitTime = 20 * time.Millisecond // closing a reader waits for its last fetch
	cfg.ChannelBufferSize = 4096
	client, err := sarama.NewClient(brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to brokers: %w", err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to brokers: %w", err), client.Close())
	}
	return &kafkaAdmin{
		cfg: kafka.Config{Brokers: brokers}, client: client, admin: admin, prefix: "bench-" + randomText(),
	}, nil
}

func randomText() string { return strings.ToLower(rand.Text()[:8]) }

// topic makes a new one.
func (k *kafkaAdmin) topic(ctx context.Context, partitions int32) (string, error) {
	name := fmt.Sprintf("%s-%d", k.prefix, len(k.made))
	return name, k.make(ctx, kafka.Topic{Name: name, Partitions: partitions})
}

func (k *kafkaAdmin) make(ctx context.Context, topic kafka.Topic) error {
	k.made = append(k.made, topic.Name)
	return kafka.EnsureTopics(ctx, k.cfg, topic)
}

// claimed refuses existing topics: a service uses them.
func (k *kafkaAdmin) claimed(ctx context.Context, topics []kafka.Topic, do func() error) (err error) {
	for _, topic := range topics {
		taken, err := kafka.DescribeTopics(ctx, k.cfg, topic.Name)
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			return fmt.Errorf("topic %s exists: this benchmark deletes it, so it takes only a broker without", topic.Name)
		}
		topic.Partitions, topic.Retention = partitions, 7*24*time.Hour // the default of the services
		if err := k.make(ctx, topic); err != nil {
			return err
		}
	}
	defer func() {
		for _, topic := range topics {
			err = errors.Join(err, k.remove(topic.Name), k.awaitRemoved(ctx, topic.Name))
		}
	}()
	return do()
}

func (k *kafkaAdmin) awaitRemoved(ctx context.Context, topic string) error {
	for {
		found, err := kafka.DescribeTopics(ctx, k.cfg, topic)
		if len(found) == 0 || err != nil {
			return err
		}
		if err := failure.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// remove frees the memory that the in-process broker keeps the topic in.
func (k *kafkaAdmin) remove(topic string) error {
	if err := k.admin.DeleteTopic(topic); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}

// close removes the topics of the run.
func (k *kafkaAdmin) close() error {
	var problems []error
	for _, name := range k.made {
		problems = append(problems, k.remove(name))
	}
	return errors.Join(append(problems, k.admin.Close())...)
}

// A relay may send an event twice.
func (k *kafkaAdmin) verify(ctx context.Context, topic string, events int) error {
	consumer, err := sarama.NewConsumerFromClient(k.client)
	if err != nil {
		return fmt.Errorf("make consumer: %w", err)
	}
	defer func() { _ = consumer.Close() }()
	t := tally{seen: make([]bool, events), newest: map[string]int{}}
	group, ctx := errgroup.WithContext(ctx) // together: each partition takes a tenth of a second to begin
	for p := range int32(partitions) {
		group.Go(func() error { return k.countPartition(ctx, consumer, topic, p, &t) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	if t.distinct != events || t.inversions > 0 {
		return fmt.Errorf("of %d events %d arrived, %d out of order", events, t.distinct, t.inversions)
	}
	return nil
}

func (k *kafkaAdmin) countPartition(
	ctx context.Context, consumer sarama.Consumer, topic string, p int32, t *tally,
) error {
	end, err := k.client.GetOffset(topic, p, sarama.OffsetNewest)
	if err != nil || end == 0 {
		return err
	}
	reader, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	for {
		select {
		case r := <-reader.Messages():
			if err := t.count(r); err != nil || r.Offset == end-1 {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tally counts the records of all partitions.
type tally struct {
	mu         sync.Mutex
	seen       []bool
	newest     map[string]int // per key
	distinct   int            // events of the run
	inversions int            // first occurrences of a key out of order
}

func (t *tally) count(r *sarama.ConsumerMessage) error {
	n, err := numberOf(r.Value)
	if err != nil || n >= len(t.seen) {
		return fmt.Errorf("record at offset %d: %w", r.Offset, errForeign)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[n] {
		return nil
	}
	t.seen[n] = true
	t.distinct++
	if last, known := t.newest[string(r.Key)]; known && last > n {
		t.inversions++
	}
	t.newest[string(r.Key)] = n
	return nil
}
