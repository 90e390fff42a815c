package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/migrations"
)

// InboxCommand is "bench inbox".
type InboxCommand struct {
	options
	Only []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"plain,versioned" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *InboxCommand) Run(ctx context.Context, to streams) error {
	plan := fullInboxPlan
	if c.Quick {
		plan = quickInboxPlan
	}
	return c.perform(ctx, to, c.Only, len(c.Only) == 0, func(st *stage) *benchmark { return newInbox(st, plan) })
}

// inboxPlan has the sizes of a run.
type inboxPlan struct {
	Slow, Fast int // records: for one event per transaction, and for batches
	Keys       int // a multiple of the partitions
}

var (
	fullInboxPlan  = inboxPlan{Slow: 8_000, Fast: 60_000, Keys: 1008}
	quickInboxPlan = inboxPlan{Slow: 2_000, Fast: 10_000, Keys: 1008}
)

const (
	inboxPartitions = 12
	inboxConsumer   = "bench"
	inboxTemplate   = "bench_inbox"
)

// inboxBench measures how fast a topic becomes rows.
type inboxBench struct {
	*stage
	plan  inboxPlan
	sheet *sheet
}

// inboxVariant is one way to consume a topic into a database.
type inboxVariant struct {
	part, name, label string
	fast              bool   // in batches
	checked           bool   // compares hashes and follows versions
	table             string // of the ids
	// consume handles every record of the run at least once and returns when ctx ends.
	consume func(ctx context.Context, c *consumption) error
}

// inboxVariants are shown and run in this order.
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
		name: "inbox", title: "Inbox: ours and by hand on watermill-kafka", plan: plan, sheet: b.sheet,
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

// consumption is what a consumer works with.
type consumption struct {
	brokers      []string
	topic, group string
	pool         *pgxpool.Pool
	handled      *arrivals[place]

	once  sync.Once
	began time.Time // the first call of a handler: joining the group does not count
}

// place is a record's.
type place struct {
	partition int32
	offset    int64
}

// begin is called when a handler is.
func (c *consumption) begin() { c.once.Do(func() { c.began = time.Now() }) }

// domainSQL makes the domain's table of every variant and the ids of the one by hand. The domain's has no unique
// constraint, which could prevent an effect that the check must count. Its position has the order of the effects.
const domainSQL = `
create table effect (
    position bigint generated always as identity, event_id text not null, number bigint not null, email text not null);
create table by_hand_inbox (
    consumer text not null, event_id text not null, event_time timestamptz not null default now(),
    primary key (consumer, event_id))`

func (b *inboxBench) measure(ctx context.Context, v inboxVariant) error {
	return b.withCopy(ctx, inboxTemplate, func(db *database) error {
		if _, err := db.Exec(ctx, domainSQL); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
		topic, err := b.kafka.topic(ctx, inboxPartitions)
		if err != nil {
			return err
		}
		count := b.plan.Slow
		if v.fast {
			count = b.plan.Fast
		}
		r := newRecords(count, b.plan.Keys, time.Now())
		if err := r.produce(ctx, b.brokers, topic); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		c := &consumption{
			brokers: b.brokers, topic: topic, group: topic + ".group", pool: db.Pool, handled: newArrivals[place](count),
		}
		err = alongside(ctx, func(ctx context.Context) error { return v.consume(ctx, c) },
			func(ctx context.Context) error { return c.handled.await(ctx, count) })
		if err != nil {
			return err
		}
		if err := r.check(ctx, db, v); err != nil {
			return fmt.Errorf("wrong result: %w", err)
		}
		b.sheet.add("rate.12."+v.name, float64(count)/c.handled.last.Sub(c.began).Seconds())
		return b.kafka.remove(topic)
	})
}
