package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

const partitions = 6

// The in-process broker keeps topics in memory, so each is deleted after its measurement.
func (s *stage) withTopic(ctx context.Context, partitions int32, do func(topic string) error) error {
	name := "bench-" + strings.ToLower(rand.Text())
	if err := kafka.EnsureTopics(ctx, s.kafka, kafka.Topic{Name: name, Partitions: partitions}); err != nil {
		return err
	}
	return errors.Join(do(name), s.deleteTopic(name))
}

func (s *stage) deleteTopic(name string) error {
	settings := s.kafka.Client()
	settings.Metadata.Full = true // the admin asks for no topic
	admin, err := sarama.NewClusterAdmin(s.kafka.Brokers, settings)
	if err != nil {
		return fmt.Errorf("connect to brokers: %w", err)
	}
	if err := errors.Join(admin.DeleteTopic(name), admin.Close()); err != nil {
		return fmt.Errorf("delete topic: %w", err)
	}
	return nil
}

// verify fails unless the topic has every event of the run, and each key's events arrived first in order. Duplicates
// are allowed.
func (s *stage) verify(ctx context.Context, topic string, events int) error {
	t := tally{seen: make([]bool, events), newest: map[string]int{}}
	err := kafka.Ask(ctx, s.kafka, "read "+topic, func(c kafka.Cluster) error {
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
	newest     map[string]int
	distinct   int // events of the run
	inversions int // first occurrences of a key out of order
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
