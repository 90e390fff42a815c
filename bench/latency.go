package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
)

const (
	// arriveLimit is how long the last events may take to arrive.
	arriveLimit = 2 * time.Minute
	// keepUpLimit is how long after the last due time every event must have arrived. A slower variant did not keep up:
	// the percentiles of a growing queue only depend on the duration of the run.
	keepUpLimit = 2 * time.Second
	// keenPoll is stock's poll interval, the shortest of ours.
	keenPoll = 5 * time.Millisecond
)

const loopRate = 1000

type latencyPlan struct {
	For    time.Duration // per variant
	Warmup int           // events before anything is measured
}

func latencyGroups(title string) []*group {
	note := "1,000/s, open loop, Poisson arrivals"
	variants := func(title, note, suffix, unit string) *group {
		return &group{Title: title, Note: note, Figures: []*figure{
			{ID: "latency.1000.ours." + suffix, Label: "ours", Unit: unit},
			{ID: "latency.1000.stock." + suffix, Label: "stock, polling every 5 ms", Unit: unit},
		}}
	}
	return []*group{
		variants(title+", p50", note, "p50", "ms"),
		variants(title+", p99", note, "p99", "ms"),
		variants("PostgreSQL's CPU per event", "all processes of the server, in those runs", "postgresql", "ms"),
		variants("Arrived in those runs", "without a latency above: did not keep up", "arrived", "events/s"),
	}
}

func latencyGoals(what string) []goal {
	of := func(id, percentile string) goal {
		return goal{
			ID: id, Label: what + " at 1,000/s, " + percentile, Unit: "ms", Bound: atMost,
			value: quotient{of: "latency.1000.ours." + percentile},
			stock: quotient{of: "latency.1000.stock." + percentile},
		}
	}
	return []goal{of("p50_ms", "p50"), of("p99_ms", "p99")}
}

// The times are fixed before the run: a system that falls behind gets no fewer events.
type openLoop struct {
	clients int
	// do makes event n and returns its name among the arrivals, when its transaction is committed.
	do       func(ctx context.Context, n int) (event string, err error)
	arrivals *arrivals[string]
	done     int
}

type passage struct {
	began     time.Time
	due       []time.Duration
	events    []string
	committed []time.Time
}

func (l *openLoop) measure(ctx context.Context, st *stage, sheet *sheet, variant string, plan latencyPlan) error {
	if _, err := l.run(ctx, make([]time.Duration, plan.Warmup)); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := st.settle(ctx); err != nil {
		return err
	}
	before, err := cpuOf(st.server.PID())
	if err != nil {
		return err
	}
	p, err := l.run(ctx, schedule(loopRate, plan.For))
	if err != nil {
		return err
	}
	after, err := cpuOf(st.server.PID())
	if err != nil {
		return err
	}
	id := "latency.1000." + variant
	took := l.arrivals.last.Sub(p.began)
	sheet.add(id+".postgresql", 1000*(after-before)/float64(len(p.due)))
	sheet.add(id+".arrived", float64(len(p.due))/max(took, plan.For).Seconds())
	if took > plan.For+keepUpLimit {
		return nil
	}
	waits := p.waits(l.arrivals)
	sheet.add(id+".p50", percentile(waits, 50))
	sheet.add(id+".p99", percentile(waits, 99))
	return nil
}

// run does each event when it is due, or as soon after as a client is free.
func (l *openLoop) run(ctx context.Context, due []time.Duration) (*passage, error) {
	p := &passage{
		began: time.Now(), due: due, events: make([]string, len(due)), committed: make([]time.Time, len(due)),
	}
	first := l.done
	var next atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	for range l.clients {
		group.Go(func() (err error) {
			for n := int(next.Add(1)) - 1; n < len(due); n = int(next.Add(1)) - 1 {
				if err := failure.Sleep(groupCtx, time.Until(p.began.Add(due[n]))); err != nil {
					return err
				}
				if p.events[n], err = l.do(groupCtx, first+n); err != nil {
					return fmt.Errorf("event %d: %w", first+n, err)
				}
				p.committed[n] = time.Now()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	l.done += len(due)
	ctx, cancel := context.WithTimeoutCause(ctx, arriveLimit, fmt.Errorf("waited %s", arriveLimit))
	defer cancel()
	return p, l.arrivals.await(ctx, l.done)
}

// An event may arrive before its commit returns: zero. The result is sorted.
func (p *passage) waits(a *arrivals[string]) []time.Duration {
	waits := make([]time.Duration, len(p.events))
	for n, event := range p.events {
		waits[n] = max(a.of(event).Sub(p.committed[n]), 0)
	}
	slices.Sort(waits)
	return waits
}

// The schedule is a Poisson process, the same in every run.
func schedule(rate float64, length time.Duration) []time.Duration {
	source := rand.New(rand.NewPCG(1, 0)) // a schedule needs repetition, not secrecy
	var due []time.Duration
	for at := time.Duration(0); ; {
		at += time.Duration(source.ExpFloat64() / rate * float64(time.Second))
		if at >= length {
			return due
		}
		due = append(due, at)
	}
}
