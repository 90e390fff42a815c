package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/migrations"
)

type relayPlan struct {
	Backlog      int
	SmallBacklog int           // a smaller one, which stock drains faster
	SignupFor    time.Duration // per variant
	Latency      latencyPlan
}

var relayPlans = map[bool]relayPlan{ // by --quick
	false: {
		Backlog: 100_000, SmallBacklog: 10_000, SignupFor: 3 * time.Second, Latency: latencyPlan{5 * time.Second, 200},
	},
	true: {Backlog: 20_000, SmallBacklog: 2_000, SignupFor: time.Second, Latency: latencyPlan{time.Second, 100}},
}

type relayBench struct {
	*stage
	plan  relayPlan
	sheet *sheet
}

const outboxTemplate = "bench_outbox"

func newRelay(st *stage, plan relayPlan) *benchmark {
	groups := append([]*group{
		{
			Title: "Draining a backlog",
			Note:  "300-byte payloads, 500 keys, 6 partitions; from the relay's start to the last acknowledgement",
			Figures: []*figure{
				{ID: "drain.stock.same", Label: "stock, same backlog", Unit: "events/s"},
				{ID: "drain.stock", Label: "stock, a smaller backlog that suits it", Unit: "events/s"},
				{ID: "drain.ours", Label: "ours", Unit: "events/s"},
				{ID: "drain.ours.ten", Label: "ours, the smaller backlog, ten keys", Unit: "events/s"},
			},
		},
		{
			Title: "Signups with and without the event", Note: "the Customer service's transaction, 8 clients, no relay",
			Figures: []*figure{
				{ID: "signup.8.bare", Label: "no event", Unit: "tx/s"},
				{ID: "signup.8.ours", Label: "ours", Unit: "tx/s"},
				{ID: "signup.8.stock", Label: "stock", Unit: "tx/s"},
			},
		},
	}, latencyGroups("Commit to acknowledgement")...)
	b := &relayBench{stage: st, plan: plan, sheet: newSheet(groups...)}
	goals := append([]goal{
		{
			ID: "ours_over_stock_same_backlog", Label: "drain over stock, same backlog", Unit: "x", Bound: atLeast, Limit: 10,
			value: quotient{"drain.ours", "drain.stock.same"},
		},
		{
			ID: "signup_ratio_8", Label: "signups with event over without, 8 clients", Bound: atLeast,
			value: quotient{"signup.8.ours", "signup.8.bare"}, stock: quotient{"signup.8.stock", "signup.8.bare"},
		},
	}, latencyGoals("commit to ack")...)
	return &benchmark{
		stage: st, name: "relay", title: "Outbox and relay: ours and stock Watermill", plan: plan, sheet: b.sheet,
		goals: goals,
		prepare: func(ctx context.Context) error {
			return b.migrate(ctx, outboxTemplate, migrations.Outbox, migrations.Customer)
		},
		parts: []part{
			{name: "drain", steps: b.drainSteps()},
			{name: "signups", steps: b.signupSteps()},
			{name: "latency", steps: b.latencySteps()},
		},
	}
}

// Every variant is an outbox with its relay, in one database, and runs through the same code.
type variant interface {
	// write adds events to the caller's transaction.
	write(ctx context.Context, tx pgx.Tx, events ...event.Event) error
	// relay publishes until ctx ends, then returns nil.
	relay(ctx context.Context, p message.Publisher) error
	// publisher uses Kafka as this variant does, and notes the messages that the broker has acknowledged.
	publisher(brokers []string, events *arrivals[string]) (message.Publisher, error)
	// table has a row for each event that was written.
	table() string
	close() error
}

// queuer is a variant whose write can travel with other statements, and whose relay wakes after each commit.
type queuer interface {
	queue(ctx context.Context, b *pgx.Batch, e event.Event) error
	committed()
}

type opener func(*database) (variant, error)

func stockPolling(every time.Duration) opener {
	return func(db *database) (variant, error) { return newStock(db, every) }
}

func (b *relayBench) with(ctx context.Context, open opener, do func(*database, variant) error) error {
	return b.withCopy(ctx, outboxTemplate, func(db *database) error {
		if open == nil {
			return do(db, nil)
		}
		v, err := open(db)
		if err != nil {
			return err
		}
		return errors.Join(do(db, v), v.close())
	})
}

func (b *relayBench) withOutboxAndTopic(
	ctx context.Context, open opener, do func(db *database, v variant, topic string) error,
) error {
	return b.with(ctx, open, func(db *database, v variant) error {
		return b.withTopic(ctx, partitions, func(topic string) error { return do(db, v, topic) })
	})
}

func (b *relayBench) relaying(
	ctx context.Context, v variant, events *arrivals[string], do func(context.Context) error,
) (err error) {
	p, err := v.publisher(b.kafka.Brokers, events)
	if err != nil {
		return fmt.Errorf("make publisher: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	err = b.withTopic(ctx, partitions, func(topic string) error {
		return p.Publish(topic, message.NewMessage("warm", []byte("{}")))
	})
	if err != nil {
		return fmt.Errorf("publish first message: %w", err)
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	return alongside(ctx, func(ctx context.Context) error { return v.relay(ctx, p) }, do)
}

// Stock sorts the rest of the backlog for each batch, so its rate depends on the size: it drains the same backlog, and
// a smaller one that suits it.
func (b *relayBench) drainSteps() []step {
	drain := func(name, figure string, open opener, events, keys int) step {
		return step{name, func(ctx context.Context) error { return b.drain(ctx, figure, open, events, keys) }}
	}
	return []step{
		drain("stock, same backlog", "drain.stock.same", stockPolling(0), b.plan.Backlog, 500),
		drain("stock, smaller backlog", "drain.stock", stockPolling(0), b.plan.SmallBacklog, 500),
		drain("ours", "drain.ours", newOurs, b.plan.Backlog, 500),
		drain("ours, ten keys", "drain.ours.ten", newOurs, b.plan.SmallBacklog, 10),
	}
}

func (b *relayBench) drain(ctx context.Context, figure string, open opener, events, keys int) error {
	return b.withOutboxAndTopic(ctx, open, func(db *database, v variant, topic string) error {
		if err := fill(ctx, db, v, corpus{topic, keys}, events); err != nil {
			return err
		}
		taken := newArrivals[string](events)
		var began time.Time
		err := b.relaying(ctx, v, taken, func(ctx context.Context) error {
			began = time.Now()
			return taken.await(ctx, events)
		})
		if err != nil {
			return err
		}
		b.sheet.add(figure, float64(events)/taken.last.Sub(began).Seconds())
		return b.verify(ctx, topic, events)
	})
}

const fillBatch = 100

func fill(ctx context.Context, db *database, v variant, c corpus, n int) error {
	for from := 0; from < n; from += fillBatch {
		var events []event.Event
		for i := from; i < min(from+fillBatch, n); i++ {
			events = append(events, c.event(i))
		}
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return v.write(ctx, tx, events...) })
		if err != nil {
			return fmt.Errorf("write backlog: %w", err)
		}
	}
	if _, err := db.Exec(ctx, "analyze"); err != nil { // as autovacuum would have: stock's plan depends on it
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

// No relay runs: this is the cost of the write itself.
func (b *relayBench) signupSteps() []step {
	signups := func(name string, open opener) step {
		return step{name, func(ctx context.Context) error {
			return b.with(ctx, open, func(db *database, v variant) error {
				rate, signups, err := signUpInAClosedLoop(ctx, db, v, b.plan.SignupFor)
				if err != nil {
					return err
				}
				b.sheet.add("signup.8."+name, rate)
				return checkStored(ctx, db, v, signups)
			})
		}}
	}
	return []step{signups("bare", nil), signups("ours", newOurs), signups("stock", stockPolling(0))}
}

// Eight clients sign up, each as fast as it can and at least once. The first tenth of the time connects and does not
// count.
func signUpInAClosedLoop(
	ctx context.Context, db *database, v variant, length time.Duration,
) (rate float64, signups int, err error) {
	var next atomic.Int64
	loop := func(length time.Duration) error {
		deadline := time.Now().Add(length)
		group, groupCtx := errgroup.WithContext(ctx)
		for range 8 {
			group.Go(func() error {
				for {
					err := corpus{topic: "bench-signups"}.signup(int(next.Add(1))).store(groupCtx, db.Pool, v)
					if err != nil || time.Now().After(deadline) {
						return err
					}
				}
			})
		}
		return errors.Join(group.Wait(), context.Cause(ctx))
	}
	if err := loop(length / 10); err != nil {
		return 0, 0, err
	}
	began, before := time.Now(), next.Load()
	err = loop(length)
	return float64(next.Load()-before) / time.Since(began).Seconds(), int(next.Load()), err
}

func (b *relayBench) latencySteps() []step {
	return []step{
		{"ours", func(ctx context.Context) error { return b.latency(ctx, "ours", newOurs) }},
		{"stock", func(ctx context.Context) error { return b.latency(ctx, "stock", stockPolling(keenPoll)) }},
	}
}

func (b *relayBench) latency(ctx context.Context, name string, open opener) error {
	return b.withOutboxAndTopic(ctx, open, func(db *database, v variant, topic string) error {
		loop := &openLoop{clients: 16, arrivals: newArrivals[string](0)}
		loop.do = func(ctx context.Context, n int) (string, error) {
			return strconv.Itoa(n), corpus{topic: topic}.signup(n).store(ctx, db.Pool, v)
		}
		err := b.relaying(ctx, v, loop.arrivals, func(ctx context.Context) error {
			return loop.measure(ctx, b.stage, b.sheet, name, b.plan.Latency)
		})
		if err != nil {
			return err
		}
		return errors.Join(checkStored(ctx, db, v, loop.done), b.verify(ctx, topic, loop.done))
	})
}
