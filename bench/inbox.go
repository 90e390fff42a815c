package main

import (
	"context"
	"time"
)

// InboxCommand is "bench inbox".
type InboxCommand struct {
	options
	Only []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"rate,duplicates,history" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *InboxCommand) Run(ctx context.Context, to streams) error {
	plan := fullInboxPlan
	if c.Quick {
		plan = quickInboxPlan
	}
	var err error
	if plan.Rounds, err = c.rounds(plan.Rounds); err != nil {
		return err
	}
	return perform(ctx, c.options, len(c.Only) == 0, to, func(ctx context.Context) (*inboxReport, error) {
		return c.measure(ctx, to, plan)
	})
}

func (c *InboxCommand) measure(ctx context.Context, to streams, plan inboxPlan) (*inboxReport, error) {
	t := terms{keep: plan.KeepDatabases, noSync: plan.NoSync, budget: plan.Budget}
	return onStage(ctx, c.options, c.Only, t, to, func(st *stage) benchmark[*inboxReport] {
		return &inboxBench{
			plan: plan, stage: st, sheet: newSheet(inboxGroups()...), profile: profiler{dir: c.Profile},
			began: time.Now().UTC(),
		}
	})
}
