package main

import (
	"context"
)

// FailoverCommand is "bench failover".
type FailoverCommand struct {
	options
	Only []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"kill,restart,freeze,consumer,penalty,idle" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *FailoverCommand) Run(ctx context.Context, to streams) error {
	plan := fullFailoverPlan
	if c.Quick {
		plan = quickFailoverPlan
	}
	var err error
	if plan.Rounds, err = c.rounds(plan.Rounds); err != nil {
		return err
	}
	return perform(ctx, c.options, len(c.Only) == 0, to, func(ctx context.Context) (*failoverReport, error) {
		return c.measure(ctx, to, plan)
	})
}

func (c *FailoverCommand) measure(ctx context.Context, to streams, plan failoverPlan) (*failoverReport, error) {
	return onStage(ctx, c.options, c.Only, terms{noSync: plan.NoSync}, to, func(st *stage) benchmark[*failoverReport] {
		return &failoverBench{plan: plan, stage: st, sheet: newSheet(failoverGroups()...), notes: to.err}
	})
}
