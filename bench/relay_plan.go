package main

import (
	"context"
	"slices"
	"strings"
	"time"
)

// batchSize is the relay's default, and what the ceiling sends per call.
const batchSize = 1000

// relayPlan says how much is measured.
type relayPlan struct {
	Rounds       int
	Backlog      int           // events to drain, ours and the ceiling
	StockBacklog int           // a smaller one, on which stock is faster
	Clients      []int         // of the signup measurement
	SignupFor    time.Duration // per client count and variant
	Rates        []float64     // of the latency measurement, events/s
	LatencyFor   time.Duration // per rate and variant
	History      []int         // published events that lie in the table
	HistoryChunk int           // of them per step
	Writes       int           // transactions of the cost measurement
	Alone        int           // events of the drain without a broker; stock gets a tenth
	StallFor     time.Duration // how long stock is watched beside a foreign transaction
	Grace        time.Duration `json:"-"` // how long after the last commit events may still arrive

	Budget        time.Duration `json:",omitempty"` // after which further rounds are left out
	NoStock       bool          `json:",omitempty"`
	KeepDatabases bool          `json:"-"` // until the end
	NoSync        bool          `json:"-"` // fsync off, for tests
}

var fullPlan = relayPlan{
	Rounds: 5, Backlog: 100_000, StockBacklog: 10_000,
	Clients: []int{1, 8, 32}, SignupFor: 1500 * time.Millisecond,
	Rates: []float64{100, 1000}, LatencyFor: 5 * time.Second,
	History: []int{100_000, 5_000_000}, HistoryChunk: 500_000,
	Writes: 500, Alone: 100_000, StallFor: 2 * time.Second, Grace: grace,
}

var quickPlan = relayPlan{
	Rounds: 2, Backlog: 10_000, StockBacklog: 1_000,
	Clients: []int{1, 8, 32}, SignupFor: 150 * time.Millisecond,
	Rates: []float64{100, 1000}, LatencyFor: 700 * time.Millisecond,
	History: []int{20_000, 200_000}, HistoryChunk: 200_000,
	Writes: 50, Alone: 10_000, StallFor: 300 * time.Millisecond, Grace: grace,
	Budget: 30 * time.Second, KeepDatabases: true,
}

// relayBench is one run of "bench relay".
type relayBench struct {
	plan    relayPlan
	stage   *stage
	sheet   *sheet
	profile profiler

	signups signupDatabases
	drains  uint16 // so far
}

// prepare makes the topic that publishers connect through.
func (b *relayBench) prepare(ctx context.Context) error { return b.stage.kafka.warm(ctx) }

// parts are the measurements, in the order in which they run.
var parts = []string{"drain", "signups", "latency", "history", "cost", "traces"}

// steps is everything that is done, in order. Variants of one measurement take turns, and another one begins each
// round: so none of them always runs first, after the pause, or last, on the fullest disk.
func (b *relayBench) steps(only []string) []step {
	var all []step
	for _, part := range parts {
		if len(only) > 0 && !slices.Contains(only, part) {
			continue
		}
		switch part {
		case "drain":
			all = append(all, interleave(part, b.plan.Rounds, b.drainSteps)...)
		case "signups":
			all = append(all, interleave(part, b.plan.Rounds, b.signupSteps)...)
		case "latency":
			all = append(all, interleave(part, b.plan.Rounds, b.latencySteps)...)
		case "history":
			of := &relayHistory{relayBench: b}
			all = append(all, of.loadSteps()...)
			all = append(all, interleave(part, b.plan.Rounds, of.behindSteps)...)
		case "cost":
			all = append(all, interleave(part, b.plan.Rounds, b.costSteps)...)
		case "traces":
			all = append(all, interleave(part, b.plan.Rounds, b.traceSteps)...)
		}
	}
	if b.plan.NoStock {
		all = slices.DeleteFunc(all, func(s step) bool { return strings.Contains(s.name, "stock") })
	}
	if b.plan.Budget > 0 {
		onceFirst(all)
	}
	return all
}

// last reports whether the round is the one that is profiled.
func (b *relayBench) last(round int) bool { return round == b.plan.Rounds-1 }

// withOurs runs do on a fresh database with our outbox in it.
func (b *relayBench) withOurs(ctx context.Context, do func(*database, variant) error) error {
	return b.stage.withDatabase(ctx, func(db *database) (variant, error) { return newOurs(db) }, do)
}

// withStock runs do on a fresh database with Watermill's.
func (b *relayBench) withStock(ctx context.Context, poll time.Duration, do func(*database, variant) error) error {
	return b.stage.withDatabase(ctx, func(db *database) (variant, error) { return newStock(db, poll) }, do)
}
