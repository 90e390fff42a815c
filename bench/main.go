// Command bench measures the system against stock Watermill and against code written by hand: "go run ./bench relay".
// docs/benchmarks.md explains each figure.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
)

// Commands are the benchmarks.
type Commands struct {
	Relay RelayCommand `cmd:"" help:"Outbox and relay against stock Watermill. About 10 minutes; with --brokers 8."`
	Inbox InboxCommand `cmd:"" help:"Consumer and inbox against code written by hand on watermill-kafka. About 2 minutes."`
	Path  PathCommand  `cmd:"" help:"From a signup in one service to the inbox of the other, against stock Watermill; then a killed leader, a frozen leader, and rest. About 8 minutes; with --quick 2."`
}

func main() {
	ctx, stop := local.WithTool(service.SignalContext(context.Background()), false)
	code := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

type streams struct{ out, err io.Writer }

// run runs one benchmark and returns the exit code.
func run(ctx context.Context, args []string, to streams) int {
	exit := -1
	parser, err := kong.New(&Commands{},
		kong.Name("bench"),
		kong.Description("Measures the system on this machine alone. It starts everything that it needs."),
		kong.UsageOnError(),
		kong.Writers(to.out, to.err),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(to),
	)
	if err != nil {
		return fail(to, err)
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		_ = fail(to, err)
		return service.ExitUsage
	}
	if err := command.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("stopped: %w", cause)
		}
		return fail(to, err)
	}
	return service.ExitOK
}

func fail(to streams, err error) int {
	_, _ = fmt.Fprintln(to.err, "bench:", err)
	return service.ExitFailure
}
