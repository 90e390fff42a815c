package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
)

const partitions = 6

type kafkaAdmin struct {
	cfg    kafka.Config
	admin  sarama.ClusterAdmin
	prefix string // keeps this run's topics apart from those of another one on the same broker
	made   []string
}

func newKafkaAdmin(brokers []string) (*kafkaAdmin, error) {
	cfg := kafka.Config{Brokers: brokers}
	settings := cfg.Client()
	settings.Metadata.Full = true
	admin, err := sarama.NewClusterAdmin(brokers, settings)
	if err != nil {
		return nil, fmt.Errorf("connect to brokers: %w", err)
	}
	return &kafkaAdmin{cfg: cfg, admin: admin, prefix: "bench-" + randomText()}, nil
}

func randomText() string { return strings.ToLower(rand.Text()[:8]) }

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

// The in-process broker keeps topics in memory.
func (k *kafkaAdmin) remove(topic string) error {
	if err := k.admin.DeleteTopic(topic); err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}

func (k *kafkaAdmin) close() error {
	var problems []error
	for _, name := range k.made {
		problems = append(problems, k.remove(name))
	}
	return errors.Join(append(problems, k.admin.Close())...)
}

// verify fails unless the topic has every event of the run, and each key's events arrived first in order. Duplicates
// are allowed.
func (k *kafkaAdmin) verify(ctx context.Context, topic string, events int) error {
	t := tally{seen: make([]bool, events), newest: map[string]int{}}
	err := kafka.Ask(ctx, k.cfg, "read "+topic, func(c kafka.Cluster) error {
		numbers, err := c.Partitions(topic)
		if err != nil {
			return err
		}
		ends, err := c.Offsets(topic, numbers, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		for i, end := range ends {
			if _, err := c.Scan(topic, numbers[i], 0, end, t.count); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.distinct != events || t.inversions > 0 {
		return fmt.Errorf("of %d events %d arrived, %d out of order", events, t.distinct, t.inversions)
	}
	return nil
}

type tally struct {
	seen       []bool
	newest     map[string]int // per key
	distinct   int            // events of the run
	inversions int            // first occurrences of a key out of order
}

func (t *tally) count(m *message.Message) error {
	n, err := numberOf(m.Payload)
	if err != nil || n >= len(t.seen) {
		return fmt.Errorf("record %s: %w", m.UUID, errForeign)
	}
	if t.seen[n] {
		return nil
	}
	t.seen[n] = true
	t.distinct++
	key := m.Metadata[event.KeyMetadata]
	if last, known := t.newest[key]; known && last > n {
		t.inversions++
	}
	t.newest[key] = n
	return nil
}
