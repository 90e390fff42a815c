package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// options are the flags that every benchmark has.
type options struct {
	Quick   bool          `help:"A smaller version of the same, in under a minute. Too short to quote."`
	Brokers string        `help:"Use a Kafka that runs elsewhere: its brokers, separated by commas. Default: a broker in this process." placeholder:"HOST:PORT,..."`
	Rounds  int           `help:"Rounds of every measurement. Default: 5, with --quick fewer."`
	Out     string        `help:"Folder of the results. Default: bench/results, where --quick does not replace a full result." placeholder:"DIR"`
	Dir     string        `help:"Folder in which the database lives meanwhile; it should be on the disk to measure, and needs 6 GB." default:".twinbox/bench"`
	PGBin   string        `help:"Folder of initdb and postgres. Default: what is installed, else what is fetched." name:"pg-bin" placeholder:"DIR"`
	Profile string        `help:"Folder for CPU profiles of timed parts, of the last round." placeholder:"DIR"`
	Limit   time.Duration `help:"Give up after this long." default:"45m"`
}

const defaultOut = "bench/results"

// rounds is what the flag says, else what the plan does.
func (o options) rounds(planned int) (int, error) {
	if o.Rounds < 0 {
		return 0, errors.New("--rounds must be positive")
	}
	if o.Rounds > 0 {
		return o.Rounds, nil
	}
	return planned, nil
}

func (o options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("took longer than %s", o.Limit))
}

func (o options) stage(to streams, durable bool) stageConfig {
	return stageConfig{Dir: o.Dir, PGBin: o.PGBin, Brokers: o.brokers(), Notes: to.err, Durable: durable}
}

func (o options) brokers() []string {
	if o.Brokers == "" {
		return nil
	}
	return strings.Split(o.Brokers, ",")
}

// show prints the table and saves the result.
func (o options) show(r report, whole bool, to streams) error {
	if err := printTable(to.out, r); err != nil {
		return err
	}
	return o.save(r, whole, to)
}

// save writes the JSON and the picture of a run that measured everything or, with --out, of any. A quick run replaces a
// full one only where it was told to.
func (o options) save(r report, whole bool, to streams) error {
	head, _ := r.parts()
	dir, name := o.Out, head.Benchmark
	if o.Brokers != "" {
		name += "-kafka"
	}
	if dir == "" {
		if !whole {
			return nil
		}
		dir = defaultOut
		if o.Quick && isFullResult(dir, name) {
			_, _ = fmt.Fprintf(to.out, "\nquick run: %s/%s.json holds a full one and stays; --out writes elsewhere\n", dir, name)
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create results folder: %w", err)
	}
	return writeReport(r, dir, name, to.out)
}
