package main

import (
	"context"
	"errors"
	"time"
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
	ctx, cancel := c.limited(ctx)
	defer cancel()
	report, err := c.measure(ctx, to, plan)
	if report == nil {
		return err
	}
	return errors.Join(err, c.show(report, len(c.Only) == 0, to))
}

// measure returns a report and an error when all was measured and something could not be put away.
func (c *PathCommand) measure(ctx context.Context, to streams, plan pathPlan) (report *pathReport, err error) {
	began := time.Now()
	st, err := openStage(ctx, c.stage(to, !plan.NoSync))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	st.keep = plan.KeepDatabases
	b := &pathBench{plan: plan, stage: st, sheet: newSheet(pathGroups()...), profile: profiler{dir: c.Profile}}
	facts, err := st.facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := runSteps(ctx, to, b.steps(c.Only), 0); err != nil {
		return nil, err
	}
	return b.report(facts, c.Quick, time.Since(began)), nil
}
