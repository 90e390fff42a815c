package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	latencyClients = 16
	// leadTime lets the relay connect and lead before the first event is due.
	leadTime = 300 * time.Millisecond
	// grace is the Grace of the plans that measure. A variant that needs longer does not keep up.
	grace = 2 * time.Second
	// keenPoll is the poll interval of stock's second chance, the shortest of ours; its default is a second.
	keenPoll = 5 * time.Millisecond
)

// latencySteps measures from commit to acknowledgement under an open loop, ours and stock at each rate; stock with its
// default poll interval too, at the lowest rate.
func (b *relayBench) latencySteps(round int) []step {
	var steps []step
	seconds := b.plan.LatencyFor.Seconds() + 1
	for i, rate := range b.plan.Rates {
		add := func(name string, with func(context.Context, func(*database, variant) error) error) {
			steps = append(steps, step{
				name: fmt.Sprintf("%s, %.0f/s", name, rate), weight: seconds,
				run: func(ctx context.Context) error {
					return with(ctx, func(db *database, v variant) error {
						return b.latency(ctx, db, v, fmt.Sprintf("latency.%.0f.%s", rate, name), rate, uint64(round))
					})
				},
			})
		}
		add("ours", b.withOurs)
		add("keen", func(ctx context.Context, do func(*database, variant) error) error {
			return b.withStock(ctx, keenPoll, do)
		})
		if i == 0 {
			add("stock", func(ctx context.Context, do func(*database, variant) error) error {
				return b.withStock(ctx, 0, do)
			})
		}
	}
	return steps
}

// latency runs one schedule of single inserts with the relay beside it.
func (b *relayBench) latency(
	ctx context.Context, db *database, v variant, id string, rate float64, seed uint64,
) (err error) {
	topic, err := b.stage.kafka.topic(ctx)
	if err != nil {
		return err
	}
	publisher, err := b.stage.connect(v.publisher)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	due := schedule(rate, b.plan.LatencyFor, seed)
	if len(due) == 0 {
		return nil
	}
	if err := b.stage.settle(ctx); err != nil {
		return err
	}
	l := newLedger(publisher, len(due))
	relay := inBackground(ctx, func(ctx context.Context) error { return v.relay(ctx, l) })
	o := openLoop{ledger: l, due: due, committed: make([]time.Duration, len(due)), grace: b.plan.Grace}
	s := &signupDatabase{db: db, v: v}
	err = relay.during(ctx, func(ctx context.Context) error {
		return o.run(ctx, func(ctx context.Context, n int) error {
			err := s.singleNumbered(ctx, corpus{topic: topic}, n)
			v.committed()
			return err
		})
	})
	if err = errors.Join(err, relay.stop()); err != nil {
		return err
	}
	return errors.Join(b.noteLatency(ctx, id, topic, o), b.stage.kafka.remove(topic))
}

func (b *relayBench) noteLatency(ctx context.Context, id, topic string, o openLoop) error {
	count, last := o.ledger.acknowledged()
	b.sheet.add(id+".published", float64(count)/max(last-leadTime, b.plan.LatencyFor).Seconds())
	if count < len(o.due) {
		return nil // did not keep up: percentiles of those that happened to come would flatter it
	}
	fromCommit, fromDue := o.latencies()
	b.sheet.add(id+".p50", milliseconds(percentile(fromCommit, 50)))
	b.sheet.add(id+".p99", milliseconds(percentile(fromCommit, 99)))
	b.sheet.add(id+".due50", milliseconds(percentile(fromDue, 50)))
	b.sheet.add(id+".due99", milliseconds(percentile(fromDue, 99)))
	return b.stage.kafka.verify(ctx, topic, len(o.due))
}

// openLoop is a run whose events are due at times fixed before.
type openLoop struct {
	ledger    *ledger
	due       []time.Duration // since the run's start
	committed []time.Duration // since ledger.began
	grace     time.Duration   // after the last commit
}

// run does each event when it is due, or as soon after as one of the clients is free, and waits for the
// acknowledgements, but not longer than grace.
func (o *openLoop) run(ctx context.Context, do func(ctx context.Context, n int) error) error {
	var next atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	for range latencyClients {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(o.due) {
					return nil
				}
				if err := sleepUntil(groupCtx, o.ledger.began.Add(leadTime+o.due[n])); err != nil {
					return err
				}
				if err := do(groupCtx, n); err != nil {
					return err
				}
				o.committed[n] = time.Since(o.ledger.began)
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	waitCtx, cancel := context.WithTimeout(ctx, o.grace)
	defer cancel()
	if err := o.ledger.wait(waitCtx); err != nil && waitCtx.Err() == nil {
		return err
	}
	return ctx.Err()
}

// latencies returns how long after its commit's return, and after the moment it was due, each event was acknowledged;
// sorted. The relay may be faster than the commit's answer: that counts as zero.
func (o *openLoop) latencies() (fromCommit, fromDue []time.Duration) {
	for n, at := range o.ledger.times() {
		fromCommit = append(fromCommit, max(at-o.committed[n], 0))
		fromDue = append(fromDue, at-leadTime-o.due[n])
	}
	slices.Sort(fromCommit)
	slices.Sort(fromDue)
	return fromCommit, fromDue
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
