// Command bench compares the system with stock Watermill and with code written by hand: "go run ./bench relay".
// docs/benchmarks.md explains each figure.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
)

func main() {
	os.Exit(runCommand(service.SignalContext(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return local.Execute(ctx, &options{}, args, stdout, stderr, kong.Name("bench"),
		kong.Description("Measures the system on this machine alone. It starts everything that it needs."))
}

type options struct {
	Benchmark string   `arg:"" enum:"relay,inbox,path" help:"relay: outbox and relay against stock Watermill, 10 minutes. inbox: consumer and inbox against code written by hand on watermill-kafka, 2 minutes. path: from a signup in one service to the inbox of the other, against stock Watermill; then a killed leader, a frozen leader, and rest, 8 minutes."`
	Only      []string `help:"Measure these parts alone: drain, signups, latency of relay; plain, versioned of inbox; latency, kill, freeze, idle of path." placeholder:"PART,..."`
	Quick     bool     `help:"One round of a smaller version. Too short to quote."`
	Rounds    uint     `help:"Rounds of every measurement, without --quick." default:"5"`
	Brokers   []string `help:"Use a Kafka that runs elsewhere: its brokers, separated by commas. For relay alone. Default: a broker in this process." placeholder:"HOST:PORT,..."`
	Out       string   `help:"Folder of the results. Default: bench/results, where --quick and --only write none." placeholder:"DIR"`
	Dir       string   `help:"Folder of the database's files during the run. It should be on the disk to measure, and needs 3 GB." default:".twinbox/bench"`
	NoSync    bool     `kong:"-"` // fsync off, for tests
}

const defaultOut = "bench/results"

func (o *options) Run(ctx context.Context, to *kong.Context) error {
	b, err := o.benchmark()
	if err != nil {
		return err
	}
	r, err := b.measure(ctx, *o, to.Stderr)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("stopped: %w", cause)
	}
	if r == nil {
		return err
	}
	return errors.Join(err, o.show(r, to.Stdout))
}

func (o *options) benchmark() (*benchmark, error) {
	var b *benchmark
	switch o.Benchmark {
	case "relay":
		b = newRelay(&stage{}, relayPlans[o.Quick])
	case "inbox":
		b = newInbox(&stage{}, inboxPlans[o.Quick])
	default:
		b = newPath(&stage{}, pathPlans[o.Quick])
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(b.parts, func(p part) bool { return p.name == name }) {
			return nil, local.UsageError(o.Benchmark + " has no part " + name)
		}
	}
	if len(o.Brokers) > 0 && o.Benchmark != "relay" {
		return nil, local.UsageError("--brokers is for relay")
	}
	return b, nil
}

// Only --out writes the result of a part or of a quick run.
func (o *options) show(r *report, to io.Writer) error {
	if err := r.print(to); err != nil {
		return err
	}
	dir, name := o.Out, r.Benchmark
	if len(o.Brokers) > 0 {
		name += "-kafka"
	}
	if dir == "" {
		if o.Quick || len(o.Only) > 0 {
			return nil
		}
		dir = defaultOut
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create results folder: %w", err)
	}
	return r.write(dir, name, to)
}
