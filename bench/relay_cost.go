package main

import (
	"context"
	"runtime"
)

// costSteps measures what an event costs beside time: the write in its transaction, and the relay on its own, with a
// publisher that takes everything at once. Statements and WAL of the relay come from the drains.
func (b *relayBench) costSteps(round int) []step {
	var steps []step
	for _, kind := range writers {
		steps = append(steps, step{
			name: "write, " + kind, weight: 2,
			run: func(ctx context.Context) error { return b.costOfWrite(ctx, kind) },
		})
	}
	return append(steps,
		step{name: "relay alone, ours", weight: 3, run: func(ctx context.Context) error {
			return b.withOurs(ctx, func(db *database, v variant) error {
				return b.alone(ctx, db, v, "ours", b.plan.Alone, b.profileName(round, "alone"))
			})
		}},
		step{name: "relay alone, stock", weight: 3, run: func(ctx context.Context) error {
			return b.withStock(ctx, 0, func(db *database, v variant) error {
				return b.alone(ctx, db, v, "stock", b.plan.Alone/10, "")
			})
		}},
	)
}

// costOfWrite runs signups one after the other and counts WAL and allocations per transaction. The first tenth is not
// counted: after a checkpoint the first change of a page writes the page.
func (b *relayBench) costOfWrite(ctx context.Context, kind string) error {
	s, err := b.signupDatabase(ctx, kind)
	if err != nil {
		return err
	}
	for range b.plan.Writes / 10 {
		if err := s.signup(ctx); err != nil {
			return err
		}
	}
	walBefore, err := b.stage.walBytes(ctx)
	if err != nil {
		return err
	}
	mallocs := countMallocs()
	for range b.plan.Writes {
		if err := s.signup(ctx); err != nil {
			return err
		}
	}
	allocations := mallocs()
	walAfter, err := b.stage.walBytes(ctx)
	if err != nil {
		return err
	}
	b.sheet.add("cost.wal.write."+kind, float64(walAfter-walBefore)/float64(b.plan.Writes))
	b.sheet.add("cost.allocations.write."+kind, allocations/float64(b.plan.Writes))
	return nil
}

// alone drains a backlog without a broker: the in-process one would be counted too.
func (b *relayBench) alone(
	ctx context.Context, db *database, v variant, name string, events int, profile string,
) error {
	if err := fill(ctx, db, v, corpus{topic: "bench-alone", keys: backlogKeys}, events); err != nil {
		return err
	}
	if err := b.stage.settle(ctx); err != nil {
		return err
	}
	mallocs := countMallocs()
	d, err := b.timeDrain(ctx, v, newLedger(accepting{}, events), profile)
	if err != nil {
		return err
	}
	b.sheet.add("cost.allocations.relay."+name, mallocs()/float64(events))
	b.sheet.add("alone."+name, d.rate)
	return nil
}

// countMallocs returns a function that says how many objects this process has allocated since.
func countMallocs() func() float64 {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() float64 {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs - before.Mallocs)
	}
}
