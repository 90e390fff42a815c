// Command bench measures the system against its goals and against what it replaces: "go run ./bench relay".
// docs/benchmarks.md says what each figure means.
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

// Commands are the benchmarks, one file each.
type Commands struct {
	Relay    RelayCommand    `cmd:"" help:"Outbox and relay, against Watermill's own and against the bare publisher. About 12 minutes; with --brokers 6."`
	Inbox    InboxCommand    `cmd:"" help:"Consumer and inbox, against what is written by hand on watermill-kafka and against the bare database. About 9 minutes."`
	Failover FailoverCommand `cmd:"" help:"Two replicas of each service, killed, frozen and restarted, and at rest. About 9 minutes; with --quick 2."`
	Path     PathCommand     `cmd:"" help:"From a signup in one service to the inbox of the other, against Watermill's own parts. About 9 minutes."`
}

func main() {
	ctx, stop := local.WithTool(service.SignalContext(context.Background()), false)
	code := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr, isTerminal(os.Stderr)})
	stop()
	os.Exit(code)
}

// streams are where a command writes: figures to out, progress to err.
type streams struct {
	out, err io.Writer
	terminal bool // err is one
}

// run runs one benchmark and returns the exit code.
func run(ctx context.Context, args []string, to streams) int {
	exit := -1
	parser, err := kong.New(&Commands{},
		kong.Name("bench"),
		kong.Description("Measures the system. Everything it needs it starts itself, on this machine alone."),
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

// isTerminal reports whether a person watches.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
