package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/migrations"
)

type pathPlan struct {
	Latency latencyPlan
	Lease   time.Duration // OUTBOX_LEASE
	Settle  time.Duration // rest before rest is measured
	IdleFor time.Duration
}

var pathPlans = map[bool]pathPlan{ // by --quick
	false: {
		Latency: latencyPlan{5 * time.Second, 500}, Lease: 15 * time.Second,
		Settle: 15 * time.Second, IdleFor: time.Minute,
	},
	true: {
		Latency: latencyPlan{1500 * time.Millisecond, 200}, Lease: 15 * time.Second,
		Settle: 10 * time.Second, IdleFor: 15 * time.Second,
	},
}

type pathBench struct {
	*stage
	plan  pathPlan
	sheet *sheet
}

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
		stage: st, name: "path", title: "From a signup to the other service's inbox: ours and stock Watermill", plan: plan,
		sheet: b.sheet, goals: append(latencyGoals("commit to inbox"), b.goals()...),
		prepare: func(ctx context.Context) error {
			return errors.Join(
				b.migrate(ctx, customerTemplate, migrations.ForCustomer()...),
				b.migrate(ctx, notificationTemplate, migrations.ForNotification()...),
				b.buildPrograms(ctx))
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

// Each database has its service's schema and no rows; the broker has empty topics.
type site struct {
	customer, notification *database
	brokers                []string
}

func (b *pathBench) withSite(ctx context.Context, do func(site) error) error {
	return withBroker(ctx, func(own kafka.Config) error {
		const retention = 7 * 24 * time.Hour // the default of the services
		if err := kafka.EnsureTopics(ctx, own,
			kafka.Topic{Name: contract.TopicUsers, Partitions: partitions, Retention: retention},
			kafka.Topic{Name: contract.TopicMails, Partitions: partitions, Retention: retention},
		); err != nil {
			return err
		}
		return b.withCopy(ctx, customerTemplate, func(customer *database) error {
			return b.withCopy(ctx, notificationTemplate, func(notification *database) error {
				return do(site{customer, notification, own.Brokers})
			})
		})
	})
}

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

func (d *database) ids(ctx context.Context, column, table string) ([]string, error) {
	rows, _ := d.Query(ctx, fmt.Sprintf("select %s::text from %s order by 1", column, table))
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return ids, nil
}

// countEffects fails unless each user of the one database has one contact and one mail in the other, and each mail
// belongs to a different event.
func (s site) countEffects(ctx context.Context) error {
	users, err := s.customer.ids(ctx, "id", "users")
	if err != nil {
		return err
	}
	for _, table := range []string{"contact", "mail"} {
		found, err := s.notification.ids(ctx, "user_id", table)
		if err != nil {
			return err
		}
		if !slices.Equal(found, users) {
			return fmt.Errorf("%d signups, but %d rows of other users in %s", len(users), len(found), table)
		}
	}
	events, err := s.notification.ids(ctx, "event_id", "mail")
	if different := len(slices.Compact(events)); err == nil && different != len(users) {
		err = fmt.Errorf("%d signups, but mails of %d events", len(users), different)
	}
	return err
}
