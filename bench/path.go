package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/migrations"
)

// PathCommand is "bench path".
type PathCommand struct {
	options
	Only []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"latency,kill,freeze,idle" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *PathCommand) Run(ctx context.Context, to streams) error {
	plan := fullPathPlan
	if c.Quick {
		plan = quickPathPlan
	}
	return c.perform(ctx, to, c.Only, len(c.Only) == 0, func(st *stage) *benchmark { return newPath(st, plan) })
}

type pathPlan struct {
	Latency latencyPlan
	Lease   time.Duration // OUTBOX_LEASE
	Settle  time.Duration // rest before rest is measured
	IdleFor time.Duration
}

var (
	fullPathPlan = pathPlan{
		Latency: latencyPlan{5 * time.Second, 500}, Lease: 15 * time.Second,
		Settle: 15 * time.Second, IdleFor: time.Minute,
	}
	quickPathPlan = pathPlan{
		Latency: latencyPlan{1500 * time.Millisecond, 200}, Lease: 15 * time.Second,
		Settle: 10 * time.Second, IdleFor: 15 * time.Second,
	}
)

type pathBench struct {
	*stage
	plan     pathPlan
	sheet    *sheet
	programs string // folder of the services' programs; "": not built yet
}

// The databases that those of a measurement are copies of.
const (
	customerTemplate     = "bench_customer"
	notificationTemplate = "bench_notification"
)

func newPath(st *stage, plan pathPlan) *benchmark {
	groups := append(latencyGroups("Commit to committed inbox"),
		&group{
			Title: "From a fault of the leading relay to the next event in the other inbox",
			Note:  "two processes of each service; a signup that came after the fault",
			Figures: []*figure{
				{ID: "relay.kill", Label: "kill -9", Unit: "ms"},
				{ID: "relay.freeze", Label: "SIGSTOP", Unit: "ms"},
			},
		},
		&group{
			Title: "At rest", Note: "CPU: of a process; statements: of both processes of a service",
			Figures: []*figure{
				{ID: "idle.cpu.customer", Label: "CPU, customer", Unit: "% of a core"},
				{ID: "idle.cpu.notification", Label: "CPU, notification", Unit: "% of a core"},
				{ID: "idle.statements.customer", Label: "statements, customer", Unit: "1/s"},
				{ID: "idle.statements.notification", Label: "statements, notification", Unit: "1/s"},
			},
		})
	b := &pathBench{stage: st, plan: plan, sheet: newSheet(groups...)}
	return &benchmark{
		name: "path", title: "From a signup to the other service's inbox: ours and stock Watermill", plan: plan,
		sheet: b.sheet, goals: append(latencyGoals("commit to inbox"), b.goals()...),
		prepare: func(ctx context.Context) error {
			return errors.Join(
				b.migrate(ctx, customerTemplate, migrations.ForCustomer()...),
				b.migrate(ctx, notificationTemplate, migrations.ForNotification()...))
		},
		parts: []part{
			{name: "latency", steps: []step{b.latencyStep("ours", openOurLine), b.latencyStep("stock", openStockLine)}},
			{name: "kill", steps: []step{b.faultStep("kill -9 of the leader", "relay.kill", syscall.SIGKILL)}},
			{name: "freeze", steps: []step{b.faultStep("SIGSTOP of the leader", "relay.freeze", syscall.SIGSTOP)}},
			{name: "idle", once: true, steps: []step{{"rest", b.idle}}},
		},
	}
}

func (b *pathBench) goals() []goal {
	most := func(id, label, unit string, limit float64, figure string) goal {
		return goal{
			ID: id, Label: label, Unit: unit, Bound: atMost, Limit: number(limit), value: quotient{of: figure}, worst: true,
		}
	}
	return []goal{
		{
			ID: "postgresql_cpu_over_stock", Label: "PostgreSQL's CPU at 1,000/s over stock's", Unit: "x", Bound: atMost,
			Limit: 1, value: quotient{"latency.1000.ours.postgresql", "latency.1000.stock.postgresql"},
		},
		most("relay_kill_ms", "kill -9 of the leader, slowest", "ms", 1000, "relay.kill"),
		most("relay_freeze_ms", "frozen leader, slowest", "ms", milliseconds(b.plan.Lease)+1000, "relay.freeze"),
		most("idle_cpu_percent.customer", "CPU at rest, customer", "%", 0.5, "idle.cpu.customer"),
		most("idle_cpu_percent.notification", "CPU at rest, notification", "%", 0.5, "idle.cpu.notification"),
		most("idle_statements_per_s.customer", "statements at rest, customer", "1/s", 5, "idle.statements.customer"),
		most("idle_statements_per_s.notification", "statements at rest, notification", "1/s", 5,
			"idle.statements.notification"),
	}
}

// line is the way from a signup in one service to the inbox of the other: relay, broker and consumer included.
type line interface {
	// signUp returns the user at the return of its commit.
	signUp(ctx context.Context, n int) (user string, err error)
	// run relays and consumes until ctx ends, then closes the line and returns nil.
	run(ctx context.Context) error
}

// Each database has its service's schema and no rows; the topic is empty.
type site struct {
	customer, notification *database
	brokers                []string
	environment            string // keeps the consumer groups apart from other runs'
}

func (b *pathBench) withSite(ctx context.Context, do func(site) error) error {
	topics := []kafka.Topic{{Name: contract.TopicUsers}, {Name: contract.TopicMails}}
	return b.kafka.claimed(ctx, topics, func() error {
		return b.withCopy(ctx, customerTemplate, func(customer *database) error {
			return b.withCopy(ctx, notificationTemplate, func(notification *database) error {
				return do(site{customer, notification, b.brokers, "bench-" + randomText()})
			})
		})
	})
}

// latencyStep measures from commit to committed inbox under an open loop, then counts the effects.
func (b *pathBench) latencyStep(name string, open func(context.Context, site, func(user string)) (line, error)) step {
	return step{name, func(ctx context.Context) error {
		return b.withSite(ctx, func(at site) error {
			loop := &openLoop{clients: 64, arrivals: newArrivals[string](0)} // more than a service has connections
			l, err := open(ctx, at, loop.arrivals.note)
			if err != nil {
				return err
			}
			loop.do = l.signUp
			return alongside(ctx, l.run, func(ctx context.Context) error {
				if err := loop.measure(ctx, b.stage, b.sheet, name, b.plan.Latency); err != nil {
					return err
				}
				return at.countEffects(ctx)
			})
		})
	}}
}

// fingerprintSQL returns the number of ids, of different ids, and a hash of them.
const fingerprintSQL = `
select count(*), count(distinct %[1]s), coalesce(sum(hashtextextended(%[1]s::text, 0)::numeric), 0)::text from %[2]s`

type ids struct {
	rows, different int
	sum             string
}

func (d *database) fingerprint(ctx context.Context, column, table string) (f ids, err error) {
	err = d.QueryRow(ctx, fmt.Sprintf(fingerprintSQL, column, table)).Scan(&f.rows, &f.different, &f.sum)
	if err != nil {
		return f, fmt.Errorf("count %s: %w", table, err)
	}
	return f, nil
}

// countEffects fails unless each user of the one database has one contact and one mail in the other, and each mail
// belongs to a different event.
func (s site) countEffects(ctx context.Context) error {
	users, err := s.customer.fingerprint(ctx, "id", "users")
	if err != nil {
		return err
	}
	for _, table := range []string{"contact", "mail"} {
		found, err := s.notification.fingerprint(ctx, "user_id", table)
		if err != nil {
			return err
		}
		if found != users {
			return fmt.Errorf("%d signups, but %d rows of %d users in %s", users.rows, found.rows, found.different, table)
		}
	}
	events, err := s.notification.fingerprint(ctx, "event_id", "mail")
	if err == nil && events.different != users.rows {
		err = fmt.Errorf("%d signups, but mails of %d events", users.rows, events.different)
	}
	return err
}
