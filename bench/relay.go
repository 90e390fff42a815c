package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// RelayCommand is "bench relay".
type RelayCommand struct {
	Quick   bool          `help:"A smaller version of the same, in under a minute. Too short to quote."`
	Brokers string        `help:"Use a Kafka that runs elsewhere: its brokers, separated by commas. Default: a broker in this process." placeholder:"HOST:PORT,..."`
	Only    []string      `help:"Measure these parts alone: ${enum}. Results are then written only with --out." enum:"drain,signups,latency,history,cost" placeholder:"PART,..."`
	Rounds  int           `help:"Rounds of every measurement. Default: 5, with --quick 2."`
	Out     string        `help:"Folder of the results. Default: bench/results, where --quick does not replace a full result." placeholder:"DIR"`
	Dir     string        `help:"Folder in which the database lives meanwhile; it should be on the disk to measure, and needs 6 GB." default:".twinbox/bench"`
	PGBin   string        `help:"Folder of initdb and postgres. Default: what is installed, else what is fetched." name:"pg-bin" placeholder:"DIR"`
	Profile string        `help:"Folder for CPU profiles of the relay and of the ceiling, of the last round." placeholder:"DIR"`
	Limit   time.Duration `help:"Give up after this long." default:"45m"`
}

const defaultOut = "bench/results"

// Run measures, prints the table and writes the results.
func (c *RelayCommand) Run(ctx context.Context, to streams) error {
	plan := fullPlan
	if c.Quick {
		plan = quickPlan
	}
	if c.Rounds < 0 {
		return errors.New("--rounds must be positive")
	}
	if c.Rounds > 0 {
		plan.Rounds = c.Rounds
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, fmt.Errorf("took longer than %s", c.Limit))
	defer cancel()
	report, err := c.measure(ctx, to, plan)
	if err != nil {
		return err
	}
	if err := report.table(to.out); err != nil {
		return err
	}
	return c.save(report, to)
}

func (c *RelayCommand) measure(ctx context.Context, to streams, plan relayPlan) (report *relayReport, err error) {
	began := time.Now()
	st, err := openStage(ctx, stageConfig{
		Dir: c.Dir, PGBin: c.PGBin, Brokers: c.brokers(), Notes: to.err, Durable: !plan.NoSync,
	})
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
	if err := runSteps(ctx, to, b.steps(c.Only), plan.Budget); err != nil {
		return nil, err
	}
	return b.report(facts, c.Quick, time.Since(began)), nil
}

func (c *RelayCommand) brokers() []string {
	if c.Brokers == "" {
		return nil
	}
	return strings.Split(c.Brokers, ",")
}

// save writes the JSON and the picture. A quick run replaces a full one only where it was told to.
func (c *RelayCommand) save(report *relayReport, to streams) error {
	dir, name := c.Out, "relay"
	if c.Brokers != "" {
		name = "relay-kafka"
	}
	if dir == "" {
		if len(c.Only) > 0 {
			return nil
		}
		dir = defaultOut
		if c.Quick && isFullResult(dir, name) {
			_, _ = fmt.Fprintf(to.out, "\nquick run: %s/%s.json holds a full one and stays; --out writes elsewhere\n", dir, name)
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create results folder: %w", err)
	}
	return report.write(dir, name, to.out)
}
