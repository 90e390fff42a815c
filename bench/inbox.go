package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/migrations"
)

type inboxPlan struct {
	Slow, Fast int // records: for one event per transaction, and for batches
	Keys       int // a multiple of the partitions
}

var inboxPlans = map[bool]inboxPlan{ // by --quick
	false: {Slow: 8_000, Fast: 60_000, Keys: 1008},
	true:  {Slow: 2_000, Fast: 10_000, Keys: 1008},
}

const (
	inboxPartitions = 12
	inboxConsumer   = "bench"
	inboxTemplate   = "bench_inbox"
)

type inboxBench struct {
	*stage
	plan  inboxPlan
	sheet *sheet
}

type inboxVariant struct {
	part, name, label string
	fast              bool // in batches
	checked           bool // compares hashes and follows versions
	table             string
	// consume handles every record of the run at least once and returns when ctx ends.
	consume func(ctx context.Context, c *consumption) error
}

var inboxVariants = []inboxVariant{
	{"plain", "hand", "by hand, id alone", false, false, "by_hand_inbox", consumeIDs},
	{"plain", "batch200", "ours, batch 200", true, false, "inbox", ourInbox(200, false)},
	{"versioned", "hand_checked", "by hand, with hash and version", false, true, "inbox", consumeChecked},
	{"versioned", "batch1_versioned", "ours, batch 1, versioned", false, true, "inbox", ourInbox(1, true)},
	{"versioned", "batch200_versioned", "ours, batch 200, versioned", true, true, "inbox", ourInbox(200, true)},
}

func newInbox(st *stage, plan inboxPlan) *benchmark {
	rates := &group{
		Title: "12 partitions", Note: "1 % redeliveries; from the first call of the handler to the last commit",
	}
	b := &inboxBench{stage: st, plan: plan}
	steps := map[string][]step{}
	for _, v := range inboxVariants {
		rates.Figures = append(rates.Figures, &figure{ID: "rate.12." + v.name, Label: v.label, Unit: "records/s"})
		steps[v.part] = append(steps[v.part], step{v.label, func(ctx context.Context) error { return b.measure(ctx, v) }})
	}
	b.sheet = newSheet(rates)
	over := func(id, label, of, over string, limit number) goal {
		return goal{
			ID: id, Label: label, Unit: "x", Bound: atLeast, Limit: limit, value: quotient{"rate.12." + of, "rate.12." + over},
		}
	}
	return &benchmark{
		stage: st, name: "inbox", title: "Inbox: ours and by hand on watermill-kafka", plan: plan, sheet: b.sheet,
		goals: []goal{
			over("batch200_over_by_hand", "batch 200 over by hand", "batch200", "hand", 5),
			over("batch200_versioned_over_by_hand", "the same, both with hash and version", "batch200_versioned",
				"hand_checked", 5),
			over("batch1_over_by_hand", "batch 1 over by hand, both checked", "batch1_versioned", "hand_checked", 0.85),
		},
		prepare: func(ctx context.Context) error { return b.migrate(ctx, inboxTemplate, migrations.Inbox) },
		parts:   []part{{name: "plain", steps: steps["plain"]}, {name: "versioned", steps: steps["versioned"]}},
	}
}

type consumption struct {
	kafka        kafka.Config
	topic, group string
	pool         *pgxpool.Pool
	handled      *arrivals[place]

	once  sync.Once
	began time.Time // the first call of a handler: joining the group does not count
}

type place struct {
	partition int32
	offset    int64
}

func (c *consumption) begin() { c.once.Do(func() { c.began = time.Now() }) }

// The domain's table has no unique constraint: it could prevent an effect that the check must count. Its position has
// the order of the effects.
const domainSQL = `
create table effect (
    position bigint generated always as identity, event_id text not null, number bigint not null, email text not null);`

func (b *inboxBench) measure(ctx context.Context, v inboxVariant) error {
	return b.withCopy(ctx, inboxTemplate, func(db *database) error {
		if _, err := db.Exec(ctx, domainSQL+byHandInbox); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
		return b.withTopic(ctx, inboxPartitions, func(topic string) error { return b.consume(ctx, v, db, topic) })
	})
}

func (b *inboxBench) consume(ctx context.Context, v inboxVariant, db *database, topic string) error {
	count := b.plan.Slow
	if v.fast {
		count = b.plan.Fast
	}
	r := newRecords(count, b.plan.Keys, time.Now())
	if err := r.produce(ctx, b.kafka, topic); err != nil {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	c := &consumption{
		kafka: b.kafka, topic: topic, group: topic + ".group", pool: db.Pool, handled: newArrivals[place](count),
	}
	err := alongside(ctx, func(ctx context.Context) error { return v.consume(ctx, c) },
		func(ctx context.Context) error { return c.handled.await(ctx, count) })
	if err != nil {
		return err
	}
	b.sheet.add("rate.12."+v.name, float64(count)/c.handled.last.Sub(c.began).Seconds())
	return r.check(ctx, db, v)
}
