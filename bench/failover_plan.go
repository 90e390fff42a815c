package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// failoverPlan says how much is measured.
type failoverPlan struct {
	Rounds     int           // of kills and restarts
	Freezes    int           // each takes a lease
	Penalties  int           // each takes Outage twice
	Rate       float64       // signups/s
	Lease      time.Duration // OUTBOX_LEASE; 0: the service's own
	Outage     time.Duration // how long no consumer runs before the backlog is drained
	Settle     time.Duration // load before each fault
	IdleSettle time.Duration // rest before idleness is measured
	IdleFor    time.Duration

	NoSync bool `json:"-"` // fsync off, for tests
}

var fullFailoverPlan = failoverPlan{
	Rounds: 20, Freezes: 5, Penalties: 5, Rate: 100, Outage: 10 * time.Second, Settle: time.Second,
	IdleSettle: 15 * time.Second, IdleFor: time.Minute,
}

var quickFailoverPlan = failoverPlan{
	Rounds: 4, Freezes: 1, Penalties: 1, Rate: 100, Outage: 3 * time.Second, Settle: time.Second,
	IdleSettle: 5 * time.Second, IdleFor: 15 * time.Second,
}

// serviceLease is the default of OUTBOX_LEASE.
const serviceLease = 15 * time.Second

func (p failoverPlan) lease() time.Duration {
	if p.Lease > 0 {
		return p.Lease
	}
	return serviceLease
}

// failoverBench is one run of "bench failover".
type failoverBench struct {
	plan  failoverPlan
	stage *stage
	sheet *sheet
	stack *stack
	notes io.Writer // progress before the first step
}

// failoverParts are what can be asked for, in the order in which it is measured. Idleness comes first: the fewer rows
// and records there are, the less it depends on what was measured before.
var failoverParts = []struct {
	name, label string
	rounds      func(failoverPlan) int
	seconds     func(failoverPlan) float64 // of a round
	run         func(*failoverBench, context.Context) error
}{
	{
		"idle", "rest", func(failoverPlan) int { return 1 },
		func(p failoverPlan) float64 { return (p.IdleSettle + p.IdleFor).Seconds() },
		(*failoverBench).idle,
	},
	{
		"kill", "kill -9 of the leading relay", func(p failoverPlan) int { return p.Rounds },
		func(p failoverPlan) float64 { return p.Settle.Seconds() + 3 }, (*failoverBench).killLeader,
	},
	{
		"restart", "kill -9 and restart of the only relay", func(p failoverPlan) int { return p.Rounds },
		func(p failoverPlan) float64 { return p.Settle.Seconds() + 3 }, (*failoverBench).restartOnly,
	},
	{
		"consumer", "kill -9 and restart of a consumer", func(p failoverPlan) int { return p.Rounds },
		func(p failoverPlan) float64 { return p.Settle.Seconds() + 3 }, (*failoverBench).killConsumer,
	},
	{
		"freeze", "SIGSTOP of the leading relay", func(p failoverPlan) int { return p.Freezes },
		func(p failoverPlan) float64 { return p.lease().Seconds() + 4 }, (*failoverBench).freezeLeader,
	},
	{
		"penalty", "backlog after kill -9 and after a clean stop", func(p failoverPlan) int { return p.Penalties },
		func(p failoverPlan) float64 { return 2 * (p.Outage.Seconds() + 5) }, (*failoverBench).penalty,
	},
}

// steps is everything that is done, in order.
func (b *failoverBench) steps(only []string) []step {
	var all []step
	for _, part := range failoverParts {
		if len(only) > 0 && !slices.Contains(only, part.name) {
			continue
		}
		rounds := part.rounds(b.plan)
		for round := range rounds {
			all = append(all, step{
				name: fmt.Sprintf("%s %d/%d: %s", part.name, round+1, rounds, part.label), weight: part.seconds(b.plan),
				run: func(ctx context.Context) error { return part.run(b, ctx) },
			})
		}
	}
	return all
}

// prepare builds the services and starts two replicas of each.
func (b *failoverBench) prepare(ctx context.Context) error {
	_, err := fmt.Fprintln(b.notes, "building and starting the services")
	if err != nil {
		return fmt.Errorf("tell of progress: %w", err)
	}
	b.stack, err = openStack(ctx, b.stage, b.plan)
	if b.stack != nil {
		b.stage.closers = append(b.stage.closers, b.stack.close)
	}
	return err
}
