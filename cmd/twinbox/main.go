// Command twinbox runs the whole system in one process: run "twinbox run".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/service"
)

// Commands are the subcommands, one file each.
type Commands struct {
	Run   RunCommand   `cmd:"" help:"Run the whole system: services, PostgreSQL, Kafka broker, mailbox."`
	Kafka KafkaCommand `cmd:"" help:"Run a real Apache Kafka, one node, until it is stopped. Needs java and, once, mvn."`
}

func main() {
	ctx := service.SignalContext(context.Background())
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a closed terminal changes nothing
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exit := -1
	parser, err := kong.New(&Commands{},
		kong.Name("twinbox"),
		kong.Description("Two services with outbox and inbox. Every flag is also a variable, TWINBOX_*."),
		kong.UsageOnError(),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.DefaultEnvars("TWINBOX"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{stdout, stderr}),
	)
	if err != nil {
		return fail(stderr, err)
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		_ = fail(stderr, err)
		return service.ExitUsage
	}
	if err := command.Run(); err != nil {
		return fail(stderr, err)
	}
	return service.ExitOK
}

func fail(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintln(stderr, "twinbox:", err)
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return service.ExitFailure
}

// streams are where a command writes.
type streams struct{ out, err io.Writer }
