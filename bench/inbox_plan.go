package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/twinbox/migrations"
)

const (
	inboxBatch      = 200 // events per transaction, the default of INBOX_BATCH
	inboxConns      = 20  // of a pool, the default of the services
	inboxPartitions = 12  // where there is only one number of them
	inboxConsumer   = "bench"
)

// inboxPlan says how much is measured.
type inboxPlan struct {
	Rounds     int
	Partitions []int
	Slow, Fast map[int]int // partitions -> records: for one event per transaction, and for batches
	Keys       int         // a multiple of every number of partitions, so that each has as many keys
	History    int         // rows that the inbox remembers
	Days       int         // over which they are spread
	PastKeys   int         // whose versions it knows, too

	Budget        time.Duration `json:",omitempty"` // after which further rounds are left out
	KeepDatabases bool          `json:"-"`          // until the end
	NoSync        bool          `json:"-"`          // fsync off, for tests
}

var fullInboxPlan = inboxPlan{
	Rounds: 5, Partitions: []int{1, 12, 48},
	Slow:    map[int]int{1: 2_500, 12: 8_000, 48: 10_000},
	Fast:    map[int]int{1: 30_000, 12: 60_000, 48: 60_000},
	Keys:    1008,
	History: 10_000_000, Days: 10, PastKeys: 1_000_000,
}

var quickInboxPlan = inboxPlan{
	Rounds: 2, Partitions: []int{1, 12, 48},
	Slow:    map[int]int{1: 1_200, 12: 2_000, 48: 2_000},
	Fast:    map[int]int{1: 4_000, 12: 10_000, 48: 10_000},
	Keys:    1008,
	History: 200_000, Days: 4, PastKeys: 20_000,
	Budget: 25 * time.Second, KeepDatabases: true,
}

// inboxBench is one run of "bench inbox".
type inboxBench struct {
	plan    inboxPlan
	stage   *stage
	sheet   *sheet
	profile profiler

	began  time.Time
	newest time.Time // of the ids of the last run

	history   *database
	without   *database  // what the history's runs are compared with
	attaching sync.Mutex // of the history's partitions
}

const inboxTemplate = "bench_inbox_template"

// effectSQL is the domain's table of every variant. It has no unique constraint: what counts effects must not be able
// to prevent one. Its position tells in which order they came.
const effectSQL = `
create table public.effect (
    position bigint generated always as identity, event_id text not null, number bigint not null, email text not null)`

// prepare makes the database that the measurements' are copies of: the inbox, the table of the hand-written one,
// and the domain's.
func (b *inboxBench) prepare(ctx context.Context) error {
	if err := b.stage.migrate(ctx, inboxTemplate, migrations.Inbox); err != nil {
		return err
	}
	db, err := b.stage.open(ctx, inboxTemplate)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, sql := range []string{effectSQL, byHandTableSQL} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("create table: %w", err)
		}
	}
	return nil
}

// steps is everything that is done, in order.
func (b *inboxBench) steps(only []string) []step {
	var all []step
	for _, part := range []string{"rate", "duplicates", "history"} {
		if len(only) > 0 && !slices.Contains(only, part) {
			continue
		}
		switch part {
		case "rate":
			all = append(all, interleave(part, b.plan.Rounds, b.rateSteps)...)
		case "duplicates":
			all = append(all, interleave(part, b.plan.Rounds, b.duplicateSteps)...)
		case "history":
			all = append(all, b.historyLoad()...)
			all = append(all, interleave(part, b.plan.Rounds, b.historySteps)...)
			all = append(all, step{name: "drop a day of the history", weight: 1, run: b.dropDay})
			all = append(all, interleave("history, a day dropped", b.plan.Rounds, b.droppedSteps)...)
		}
	}
	return all
}

// rateSteps are the variants at every number of partitions, with 1 % of redeliveries.
func (b *inboxBench) rateSteps(round int) []step {
	var steps []step
	for _, partitions := range b.plan.Partitions {
		for _, v := range inboxVariants {
			if partitions != inboxPartitions && v.once {
				continue
			}
			r := inboxRun{
				variant: v, partitions: partitions, duplicates: 1,
				figure: fmt.Sprintf("rate.%d.%s", partitions, v.name),
			}
			if partitions == inboxPartitions {
				r.wal = "cost.wal." + v.name
				if round == b.plan.Rounds-1 {
					r.profile = v.name
				}
			}
			steps = append(steps, b.step(r, fmt.Sprintf("%s, %d partitions", v.label, partitions)))
		}
	}
	return steps
}

// duplicateSteps are the same with more redeliveries.
func (b *inboxBench) duplicateSteps(int) []step {
	var steps []step
	for _, duplicates := range []int{50, 100} {
		for _, name := range duplicateVariants {
			v := inboxVariantOf(name)
			steps = append(steps, b.step(inboxRun{
				variant: v, partitions: inboxPartitions, duplicates: duplicates,
				figure: fmt.Sprintf("duplicates.%d.%s", duplicates, v.name),
			}, fmt.Sprintf("%s, %d %%", v.label, duplicates)))
		}
	}
	return steps
}

// step is one run on a database of its own.
func (b *inboxBench) step(r inboxRun, name string) step {
	return step{name: name, weight: 4, run: func(ctx context.Context) error { return b.onFresh(ctx, r) }}
}
