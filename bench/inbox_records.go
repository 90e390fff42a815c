package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// Record i is a new event of key i % keys with its next version, or a redelivery of the key's newest event.
type records struct {
	keys     []string
	base     time.Time
	numbers  []int // of each record's event: the record that had it first
	versions []int64
	events   int
}

// One record in this many is a redelivery. The number is prime, so redeliveries cover all keys.
const redelivered = 101

func newRecords(count, keys int, base time.Time) *records {
	r := &records{
		keys: make([]string, keys), base: base.UTC().Truncate(time.Millisecond), numbers: make([]int, count),
		versions: make([]int64, count),
	}
	for i := range r.keys {
		r.keys[i] = keyIn(int32(i%inboxPartitions), i)
	}
	for i := range count {
		before := i - keys
		switch {
		case before < 0:
			r.numbers[i], r.versions[i] = i, 1
		case i%redelivered == 0:
			r.numbers[i], r.versions[i] = r.numbers[before], r.versions[before]
			continue
		default:
			r.numbers[i], r.versions[i] = i, r.versions[before]+1
		}
		r.events++
	}
	return r
}

func keyIn(partition int32, n int) string {
	for try := 0; ; try++ {
		key := fmt.Sprintf("member-%06d-%d", n, try)
		if kafka.PartitionOf(key, inboxPartitions) == partition {
			return key
		}
	}
}

func (r *records) event(i int) event.Event {
	n := r.numbers[i]
	return event.Event{
		ID: idAt(r.base, n), Source: eventSource, Type: eventType, Key: r.keys[n%len(r.keys)], Time: r.base,
		Version: r.versions[i], Data: payload(n),
	}
}

const produceChunk = 5_000

func (r *records) produce(ctx context.Context, to kafka.Config, topic string) (err error) {
	publisher, err := kafka.NewPublisher(to, nil)
	if err != nil {
		return fmt.Errorf("make publisher: %w", err)
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	for from := 0; from < len(r.numbers); from += produceChunk {
		var chunk []*message.Message
		for i := from; i < min(from+produceChunk, len(r.numbers)); i++ {
			chunk = append(chunk, r.event(i).Message())
		}
		if err := publisher.PublishContext(ctx, topic, chunk...); err != nil {
			return fmt.Errorf("produce records: %w", err)
		}
	}
	return nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// check fails unless the tables have exactly the rows of the run's events: each effect once and in the order of its
// key, each id, each key at its newest version, and no dead letter. So no variant gains from omitted work.
func (r *records) check(ctx context.Context, db querier, v inboxVariant) error {
	type number struct {
		of   string
		want int
		sql  string
	}
	numbers := []number{
		{"effects", r.events, "select count(*) from effect"},
		{"events with an effect", r.events, "select count(distinct event_id) from effect"},
		{"sum of the events' numbers", r.sum(), "select coalesce(sum(number), 0)::bigint from effect"},
		{"effects out of order", 0, fmt.Sprintf(`select count(*) filter (where number <= before) from (select number,
			lag(number) over (partition by number %% %d order by position) as before from effect) as e`, len(r.keys))},
		{"ids remembered", r.events, "select count(*) from " + v.table},
		{"dead letters, owners and attempts left", 0, `select (select count(*) from dead_letter)
			+ (select count(*) from inbox_owner) + (select count(*) from inbox_attempt)`},
	}
	if v.checked { // versions count from 1: the newest ones add up to all
		numbers = append(numbers,
			number{"keys with a version", min(len(r.keys), len(r.numbers)), "select count(*) from inbox_key"},
			number{"sum of the versions", r.events, "select coalesce(sum(version), 0)::bigint from inbox_key"})
	}
	var problems []error
	for _, n := range numbers {
		var got int
		if err := db.QueryRow(ctx, n.sql).Scan(&got); err != nil {
			return fmt.Errorf("count %s: %w", n.of, err)
		}
		if got != n.want {
			problems = append(problems, fmt.Errorf("%s: %d, want %d", n.of, got, n.want))
		}
	}
	return errors.Join(problems...)
}

func (r *records) sum() (sum int) {
	for i, n := range r.numbers {
		if n == i {
			sum += n
		}
	}
	return sum
}
