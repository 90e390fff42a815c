package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
)

// pathPlan says how much is measured.
type pathPlan struct {
	Rounds      int           // of the latencies
	Rates       []float64     // signups/s
	LatencyFor  time.Duration // per rate and line
	Warm        int           // signups before anything is measured
	ProbeFrom   float64       // signups/s at which the search for the highest rate begins
	ProbeFor    time.Duration // per step of it
	CloseEnough float64       // ends it: the highest rate that was held and the lowest that was not differ by less
	HoldFor     time.Duration // how long the rate that was found has to be held

	KeepDatabases bool `json:"-"` // until the end
	NoSync        bool `json:"-"` // fsync off, for tests
}

var fullPathPlan = pathPlan{
	Rounds: 5, Rates: []float64{100, 1000}, LatencyFor: 5 * time.Second, Warm: 500,
	ProbeFrom: 500, ProbeFor: 5 * time.Second, CloseEnough: 1.1, HoldFor: time.Minute,
}

var quickPathPlan = pathPlan{
	Rounds: 1, Rates: []float64{100, 1000}, LatencyFor: 1500 * time.Millisecond, Warm: 200,
	ProbeFrom: 500, ProbeFor: time.Second, CloseEnough: 1.1, HoldFor: 2 * time.Second, KeepDatabases: true,
}

// pathBench is one run of "bench path".
type pathBench struct {
	plan    pathPlan
	stage   *stage
	sheet   *sheet
	profile profiler
	probes  []probe
}

// pathLines are the implementations, in the order of the table.
var pathLines = []struct {
	name, label string
	poll        time.Duration
	open        func(context.Context, lineConfig) (line, error)
}{
	{name: "ours", label: "ours", open: openOurLine},
	{name: "stock", label: "stock, polling every 5 ms", poll: keenPoll, open: newStockLine},
}

// The databases that those of a line are copies of.
const (
	customerTemplate     = "bench_customer"
	notificationTemplate = "bench_notification"
)

// prepare makes what every line needs: the schemas of both services, and their topics.
func (b *pathBench) prepare(ctx context.Context) error {
	return errors.Join(
		b.stage.migrate(ctx, customerTemplate, migrations.ForCustomer()...),
		b.stage.migrate(ctx, notificationTemplate, migrations.ForNotification()...),
		b.stage.kafka.claim(ctx, contract.TopicUsers, contract.TopicMails),
	)
}

// steps is everything that is done, in order; the lines take turns.
func (b *pathBench) steps(only []string) []step {
	var all []step
	wanted := func(part string) bool { return len(only) == 0 || slices.Contains(only, part) }
	for round := range b.plan.Rounds {
		for i := range pathLines {
			if wanted("latency") {
				all = append(all, b.latencyStep(round, (i+round)%len(pathLines)))
			}
		}
	}
	for i := range pathLines {
		if wanted("held") {
			all = append(all, b.heldStep(i))
		}
	}
	return all
}

func (b *pathBench) latencyStep(round, i int) step {
	of := pathLines[i]
	return step{
		name:   fmt.Sprintf("latency %d/%d: %s", round+1, b.plan.Rounds, of.name),
		weight: float64(len(b.plan.Rates))*b.plan.LatencyFor.Seconds() + 2,
		run: func(ctx context.Context) error {
			return b.withLine(ctx, i, func(ctx context.Context, l *openLine) error {
				for _, rate := range b.plan.Rates {
					profile := ""
					if round == b.plan.Rounds-1 {
						profile = fmt.Sprintf("%s-%.0f", of.name, rate)
					}
					if err := b.latency(ctx, of.name, l, rate, uint64(round), profile); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (b *pathBench) heldStep(i int) step {
	of := pathLines[i]
	return step{
		name: "highest rate: " + of.name, weight: 10*b.plan.ProbeFor.Seconds() + 1.5*b.plan.HoldFor.Seconds(),
		run: func(ctx context.Context) error {
			return b.withLine(ctx, i, func(ctx context.Context, l *openLine) error {
				return b.held(ctx, of.name, l, of.name+"-held")
			})
		},
	}
}

// withLine opens a line on new databases and an empty topic, warms it, runs do beside it and counts.
func (b *pathBench) withLine(ctx context.Context, i int, do func(context.Context, *openLine) error) (err error) {
	cfg := lineConfig{
		brokers: b.stage.brokers, poll: pathLines[i].poll, environment: "bench-" + randomText(),
	}
	if cfg.customer, err = b.stage.copyOf(ctx, customerTemplate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stage.drop(context.WithoutCancel(ctx), cfg.customer)) }()
	if cfg.notification, err = b.stage.copyOf(ctx, notificationTemplate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stage.drop(context.WithoutCancel(ctx), cfg.notification)) }()
	if err := b.stage.kafka.renew(ctx, contract.TopicUsers); err != nil {
		return err
	}
	l := &openLine{arrivals: newArrivals()}
	cfg.arrived = l.arrivals.note
	if l.line, err = pathLines[i].open(ctx, cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	running := inBackground(ctx, l.run)
	err = running.during(ctx, func(ctx context.Context) error {
		if _, err := l.pass(ctx, make([]time.Duration, b.plan.Warm), drainLimit); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		if err := do(ctx, l); err != nil {
			return err
		}
		return l.verify(ctx)
	})
	return errors.Join(err, running.stop())
}

// loaded runs one schedule. What the server writes out before it is not counted as the schedule's.
func (b *pathBench) loaded(
	ctx context.Context, l *openLine, seed uint64, rate float64, length, bound time.Duration, profile string,
) (*passage, error) {
	if err := b.stage.settle(ctx); err != nil {
		return nil, err
	}
	stop, err := b.profile.start(profile)
	if err != nil {
		return nil, err
	}
	before, err := b.stage.serverCPU()
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	p, err := l.pass(ctx, schedule(rate, length, seed), bound)
	after, cpuErr := b.stage.serverCPU()
	p.serverCPU = after - before
	return p, errors.Join(err, cpuErr, stop())
}

// keepUpBound is by how much a line may be late and still have a latency.
const keepUpBound = 2 * time.Second

// latency measures one rate.
func (b *pathBench) latency(
	ctx context.Context, name string, l *openLine, rate float64, seed uint64, profile string,
) error {
	p, err := b.loaded(ctx, l, seed, rate, b.plan.LatencyFor, keepUpBound, profile)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("path.%.0f.%s", rate, name)
	b.sheet.add(id+".postgresql", 1000*p.serverCPU/float64(max(len(p.due), 1)))
	b.sheet.add(id+".arrived", p.rate(l.arrivals, b.plan.LatencyFor))
	if held, _ := p.verdict(l.arrivals); !held {
		return nil // did not keep up: percentiles of a queue that grows say how long it was watched
	}
	fromCommit, fromDue := p.latencies(l.arrivals)
	slices.Sort(fromCommit)
	slices.Sort(fromDue)
	for _, q := range pathQuantiles {
		b.sheet.add(id+"."+q.name, milliseconds(percentile(fromCommit, q.percent)))
		b.sheet.add(id+".due."+q.name, milliseconds(percentile(fromDue, q.percent)))
	}
	return nil
}

var pathQuantiles = []struct {
	name, label string
	percent     float64
}{{"p50", "p50", 50}, {"p99", "p99", 99}, {"p999", "p99.9", 99.9}}
