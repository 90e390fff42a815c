package main

import (
	"context"
	"errors"
	"time"
)

// RelayCommand is "bench relay".
type RelayCommand struct {
	options
	NoStock bool     `help:"Leave out what measures the stock relay, for work on ours. Results are then written only with --out."`
	Only    []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"drain,signups,latency,history,cost" placeholder:"PART,..."`
}

// Run measures, prints the table and writes the results.
func (c *RelayCommand) Run(ctx context.Context, to streams) error {
	plan := fullPlan
	if c.Quick {
		plan = quickPlan
	}
	var err error
	if plan.Rounds, err = c.rounds(plan.Rounds); err != nil {
		return err
	}
	plan.NoStock = c.NoStock
	ctx, cancel := c.limited(ctx)
	defer cancel()
	report, err := c.measure(ctx, to, plan)
	if report == nil {
		return err
	}
	return errors.Join(err, c.show(report, len(c.Only) == 0 && !c.NoStock, to))
}

// measure returns a report and an error when all was measured and something could not be put away.
func (c *RelayCommand) measure(ctx context.Context, to streams, plan relayPlan) (report *relayReport, err error) {
	began := time.Now()
	st, err := openStage(ctx, c.stage(to, !plan.NoSync))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	st.keep = plan.KeepDatabases
	b := &relayBench{plan: plan, stage: st, sheet: newSheet(relayGroups()...), profile: profiler{dir: c.Profile}}
	facts, err := st.facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := st.kafka.warm(ctx); err != nil {
		return nil, err
	}
	if err := runSteps(ctx, to, b.steps(c.parts()), plan.Budget); err != nil {
		return nil, err
	}
	return b.report(facts, c.Quick, time.Since(began)), nil
}

// parts are those asked for. Of a Kafka that runs elsewhere the default is what it takes part in: signups and costs
// never reach a broker, and what lies in the table is no matter to one.
func (c *RelayCommand) parts() []string {
	if len(c.Only) == 0 && c.Brokers != "" {
		return []string{"drain", "latency"}
	}
	return c.Only
}
