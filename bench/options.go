package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

type options struct {
	Quick   bool          `help:"One round of a smaller version. Too short to quote."`
	Brokers []string      `help:"Use a Kafka that runs elsewhere: its brokers, separated by commas. Default: a broker in this process." placeholder:"HOST:PORT,..."`
	Rounds  int           `help:"Rounds of every measurement. Default: 5, with --quick 1."`
	Out     string        `help:"Folder of the results. Default: bench/results, where --quick does not replace a full result." placeholder:"DIR"`
	Dir     string        `help:"Folder of the database's files during the run. It should be on the disk to measure, and needs 3 GB." default:".twinbox/bench"`
	PGBin   string        `help:"Folder of initdb and postgres. Default: the installed one, else one that is fetched." name:"pg-bin" placeholder:"DIR"`
	Profile string        `help:"Folder for a CPU profile of each step." placeholder:"DIR"`
	Limit   time.Duration `help:"Give up after this long." default:"45m"`
	NoSync  bool          `kong:"-"` // fsync off, for tests
}

const defaultOut = "bench/results"

func (o options) rounds() (int, error) {
	switch {
	case o.Rounds < 0:
		return 0, errors.New("--rounds must be positive")
	case o.Rounds > 0:
		return o.Rounds, nil
	case o.Quick:
		return 1, nil
	}
	return 5, nil
}

// Only --out writes the result of a part. Without --out a quick run never replaces a full result.
func (o options) show(r *report, whole bool, to streams) error {
	if err := r.print(to.out); err != nil {
		return err
	}
	dir, name := o.Out, r.Benchmark
	if len(o.Brokers) > 0 {
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
	return r.write(dir, name, to.out)
}
