package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// records are what lies in the topic of a run. Record i is in partition i % partitions at offset i / partitions, so
// that every partition has as much to do. It carries a new event of key i % keys, the next version of it, or is a
// redelivery of the key's newest one.
type records struct {
	partitions int
	keys       int
	base       time.Time // of the ids
	numbers    []int     // of each record's event: the record that carried it first
	versions   []int64
	events     int // different ones
}

// idsPerMillisecond is how closely the events of a run follow each other.
const idsPerMillisecond = 64

func newRecords(count, partitions, keys, duplicates int, base time.Time) *records {
	r := &records{
		partitions: partitions, keys: keys, base: base, numbers: make([]int, count), versions: make([]int64, count),
	}
	// The first record of a key is never a redelivery, so the others are it a little more often.
	share := 0.0
	if count > keys {
		share = float64(duplicates) / 100 * float64(count) / float64(count-keys)
	}
	source := rand.New(rand.NewPCG(uint64(duplicates), 0)) // a layout needs repetition, not secrecy
	for i := range count {
		before := i - keys
		if before >= 0 && source.Float64() < share {
			r.numbers[i], r.versions[i] = r.numbers[before], r.versions[before]
			continue
		}
		r.numbers[i], r.versions[i] = i, 1
		if before >= 0 {
			r.versions[i] = r.versions[before] + 1
		}
		r.events++
	}
	return r
}

func (r *records) isNew(i int) bool { return r.numbers[i] == i }

// until is just behind the newest id.
func (r *records) until() time.Time {
	return r.base.Add(time.Duration(len(r.numbers)/idsPerMillisecond+1) * time.Millisecond)
}

func (r *records) timeOf(n int) time.Time {
	return r.base.Add(time.Duration(n/idsPerMillisecond) * time.Millisecond)
}

// id is a UUIDv7 of the event's time that ends in its number.
func (r *records) id(n int) string { return idAt(r.timeOf(n), n) }

func idAt(at time.Time, n int) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], uint64(n)|1<<63)
	return id.String()
}

func (r *records) key(n int) string { return fmt.Sprintf("member-%06d", n%r.keys) }

// event is what record i carries.
func (r *records) event(i int) event.Event {
	n := r.numbers[i]
	return event.Event{
		ID: r.id(n), Source: eventSource, Type: eventType, Key: r.key(n), Time: r.timeOf(n), Version: r.versions[i],
		Data: payload(n),
	}
}

// produceChunk is how many records one call gets.
const produceChunk = 5_000

// produce writes the topic.
func (r *records) produce(ctx context.Context, brokers []string, topic string) error {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true // also keeps the order
	cfg.Net.MaxOpenRequests = 1
	cfg.Producer.Return.Successes = true
	cfg.Producer.Retry.Max = 50 // a topic that was just made has no leaders yet
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	if err != nil {
		return fmt.Errorf("connect producer: %w", err)
	}
	defer func() { _ = producer.Close() }()
	for from := 0; from < len(r.numbers) && ctx.Err() == nil; from += produceChunk {
		chunk := make([]*sarama.ProducerMessage, 0, produceChunk)
		for i := from; i < min(from+produceChunk, len(r.numbers)); i++ {
			record, err := kafka.Marshaler{}.Marshal(topic, r.event(i).Message())
			if err != nil {
				return fmt.Errorf("marshal record: %w", err)
			}
			record.Partition = int32(i % r.partitions)
			chunk = append(chunk, record)
		}
		if err := producer.SendMessages(chunk); err != nil {
			return fmt.Errorf("produce records: %w", err)
		}
	}
	return context.Cause(ctx)
}
