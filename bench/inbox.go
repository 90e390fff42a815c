package main

import (
	"context"
	"errors"
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
	ctx, cancel := c.limited(ctx)
	defer cancel()
	report, err := c.measure(ctx, to, plan)
	if report == nil {
		return err
	}
	return errors.Join(err, c.show(report, len(c.Only) == 0, to))
}

// measure returns a report and an error when all was measured and something could not be put away.
func (c *InboxCommand) measure(ctx context.Context, to streams, plan inboxPlan) (report *inboxReport, err error) {
	began := time.Now()
	st, err := openStage(ctx, c.stage(to, !plan.NoSync))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	st.keep = plan.KeepDatabases
	b := &inboxBench{
		plan: plan, stage: st, sheet: newSheet(inboxGroups()...), profile: profiler{dir: c.Profile}, began: began.UTC(),
	}
	facts, err := st.facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.makeTemplate(ctx); err != nil {
		return nil, err
	}
	if err := runSteps(ctx, to, b.steps(c.Only), plan.Budget); err != nil {
		return nil, err
	}
	return b.report(facts, c.Quick, time.Since(began)), nil
}
