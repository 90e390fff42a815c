package main

import (
	"context"
)

// RelayCommand is "bench relay".
type RelayCommand struct {
	options
	NoStock bool     `help:"Leave out what measures the stock relay, for work on ours. Results are then written only with --out."`
	Only    []string `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"drain,signups,latency,history,cost,traces" placeholder:"PART,..."`
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
	return perform(ctx, c.options, len(c.Only) == 0 && !c.NoStock, to, func(ctx context.Context) (*relayReport, error) {
		return c.measure(ctx, to, plan)
	})
}

func (c *RelayCommand) measure(ctx context.Context, to streams, plan relayPlan) (*relayReport, error) {
	t := terms{keep: plan.KeepDatabases, noSync: plan.NoSync, budget: plan.Budget}
	return onStage(ctx, c.options, c.parts(), t, to, func(st *stage) benchmark[*relayReport] {
		return &relayBench{
			plan: plan, stage: st, sheet: newSheet(relayGroups()...), profile: profiler{dir: c.Profile},
		}
	})
}

// parts are those asked for. Of a Kafka that runs elsewhere the default is what it takes part in: signups and costs
// never reach a broker, and what lies in the table is no matter to one.
func (c *RelayCommand) parts() []string {
	if len(c.Only) == 0 && c.Brokers != "" {
		return []string{"drain", "latency"}
	}
	return c.Only
}
