package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
)

const (
	partitions = 6
	warmTopic  = "bench-warm"
)

// kafkaAdmin makes and removes topics, and reads them back.
type kafkaAdmin struct {
	brokers []string
	admin   sarama.ClusterAdmin
	prefix  string
	made    int
	claimed []string
}

func newKafkaAdmin(brokers []string) (*kafkaAdmin, error) {
	cfg := readerConfig()
	admin, err := sarama.NewClusterAdmin(brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to brokers: %w", err)
	}
	return &kafkaAdmin{brokers: brokers, admin: admin, prefix: "bench-" + randomText()}, nil
}

func readerConfig() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.Fetch.Default = 4 << 20
	cfg.Consumer.MaxWaitTime = 20 * time.Millisecond // closing a reader waits for its last fetch
	cfg.ChannelBufferSize = 4096
	return cfg
}

// topic makes a new one and waits for its leaders.
func (k *kafkaAdmin) topic(ctx context.Context) (string, error) { return k.topicOf(ctx, partitions) }

func (k *kafkaAdmin) topicOf(ctx context.Context, partitions int32) (string, error) {
	k.made++
	name := fmt.Sprintf("%s-%d", k.prefix, k.made)
	return name, kafka.EnsureTopics(ctx, kafka.Config{Brokers: k.brokers}, kafka.Topic{Name: name, Partitions: partitions})
}

// warm makes the topic that publishers connect through.
func (k *kafkaAdmin) warm(ctx context.Context) error {
	return kafka.EnsureTopics(ctx, kafka.Config{Brokers: k.brokers}, kafka.Topic{Name: warmTopic, Partitions: partitions})
}

// remove frees what the in-process broker keeps in memory.
func (k *kafkaAdmin) remove(topic string) error {
	if err := k.admin.DeleteTopic(topic); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}

// claim makes topics that must have their own names, and takes them away at the end. It refuses existing ones: they
// are in use.
func (k *kafkaAdmin) claim(ctx context.Context, names ...string) error {
	taken, err := kafka.DescribeTopics(ctx, kafka.Config{Brokers: k.brokers}, names...)
	if err != nil {
		return err
	}
	for name := range taken {
		return fmt.Errorf("topic %s exists: this benchmark empties it, so it takes only a broker without", name)
	}
	for _, name := range names {
		if err := kafka.EnsureTopics(ctx, kafka.Config{Brokers: k.brokers}, claimedTopic(name)); err != nil {
			return err
		}
		k.claimed = append(k.claimed, name)
	}
	return nil
}

// claimedTopic has the services' default retention.
func claimedTopic(name string) kafka.Topic {
	return kafka.Topic{Name: name, Partitions: partitions, Retention: 7 * 24 * time.Hour}
}

// renew makes a claimed topic anew. The relay of a new database would take the records of the last run for events that
// its database has lost, and a new consumer group would begin with them.
func (k *kafkaAdmin) renew(ctx context.Context, name string) error {
	if err := k.remove(name); err != nil {
		return err
	}
	cfg := kafka.Config{Brokers: k.brokers}
	for found := map[string]kafka.TopicState{name: {}}; len(found) > 0; {
		var err error
		if found, err = kafka.DescribeTopics(ctx, cfg, name); err != nil {
			return err
		}
		if err := failure.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return kafka.EnsureTopics(ctx, cfg, claimedTopic(name))
}

func (k *kafkaAdmin) close() error {
	var problems []error
	for _, name := range k.claimed {
		problems = append(problems, k.remove(name))
	}
	return errors.Join(append(problems, k.admin.Close())...)
}

// verify reads the whole topic and fails unless every event of the run is there and each key's events arrived first in
// order. Duplicates are allowed, as they are to a relay.
func (k *kafkaAdmin) verify(ctx context.Context, topic string, events int) error {
	client, err := sarama.NewClient(k.brokers, readerConfig())
	if err != nil {
		return fmt.Errorf("connect to brokers: %w", err)
	}
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("make consumer: %w", err)
	}
	t := tally{seen: make([]bool, events), newest: map[string]int{}}
	group, ctx := errgroup.WithContext(ctx) // together: a client takes a tenth of a second to begin with each partition
	for p := range int32(partitions) {
		group.Go(func() error { return eachRecord(ctx, client, consumer, topic, p, t.count) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	if t.distinct != events || t.inversions > 0 {
		return fmt.Errorf("of %d events %d arrived, %d out of order", events, t.distinct, t.inversions)
	}
	return nil
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
	n, err := numberOf(idOf(r))
	if err != nil || n >= len(t.seen) {
		return fmt.Errorf("record at offset %d: %w", r.Offset, errForeignID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[n] {
		return nil
	}
	t.seen[n] = true
	t.distinct++
	if last, ok := t.newest[string(r.Key)]; ok && last > n {
		t.inversions++
	}
	t.newest[string(r.Key)] = n
	return nil
}

func eachRecord(
	ctx context.Context, client sarama.Client, consumer sarama.Consumer, topic string, p int32,
	do func(*sarama.ConsumerMessage) error,
) error {
	end, err := client.GetOffset(topic, p, sarama.OffsetNewest)
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
			if err := do(r); err != nil {
				return err
			}
			if r.Offset == end-1 {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idOf finds the event's id in our marshaler's header or in watermill-kafka's.
func idOf(r *sarama.ConsumerMessage) string {
	for _, h := range r.Headers {
		if name := string(h.Key); name == "ce_id" || name == "_watermill_message_uuid" {
			return string(h.Value)
		}
	}
	return ""
}
