package main

import (
	"context"
)

// PathCommand is "bench path".
type PathCommand struct {
	options
	Only []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"latency,held" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *PathCommand) Run(ctx context.Context, to streams) error {
	plan := fullPathPlan
	if c.Quick {
		plan = quickPathPlan
	}
	var err error
	if plan.Rounds, err = c.rounds(plan.Rounds); err != nil {
		return err
	}
	return perform(ctx, c.options, len(c.Only) == 0, to, func(ctx context.Context) (*pathReport, error) {
		return c.measure(ctx, to, plan)
	})
}

func (c *PathCommand) measure(ctx context.Context, to streams, plan pathPlan) (*pathReport, error) {
	t := terms{keep: plan.KeepDatabases, noSync: plan.NoSync}
	return onStage(ctx, c.options, c.Only, t, to, func(st *stage) benchmark[*pathReport] {
		return &pathBench{
			plan: plan, stage: st, sheet: newSheet(pathGroups()...), profile: profiler{dir: c.Profile},
		}
	})
}
