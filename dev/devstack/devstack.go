// Package devstack runs what stands around the services on a developer's machine: the whole system in one process
// ("make run"), or a real Apache Kafka alone ("make kafka"). No product binary knows it.
package devstack

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
	Demo  DemoCommand  `cmd:"" help:"Run a system of its own, break it, and ask whether anything was lost."`
	Serve ServeCommand `cmd:"" hidden:""`
}

// streams are where a command writes: stdout is for results, stderr for people.
type streams struct{ out, err io.Writer }

// Main runs the command line of this process and ends it.
func Main() {
	ctx := service.SignalContext(context.Background())
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a closed terminal changes nothing
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command and returns the exit code: 0 done, 1 failed, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exit := -1
	parser, err := kong.New(&Commands{},
		kong.Name("devstack"),
		kong.Description("The whole system on one machine. Settings are also variables, TWINBOX_*; the help names them. "+
			"Exit codes: 0 done, 1 failed, 2 usage."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.DefaultEnvars("TWINBOX"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{out: stdout, err: stderr}),
	)
	if err != nil {
		return report(stderr, err, service.ExitFailure)
	}
	command, err := parser.Parse(args)
	switch {
	case exit >= 0: // --help
		return exit
	case err != nil:
		return report(stderr, err, service.ExitUsage)
	}
	if err := command.Run(); err != nil {
		return report(stderr, err, service.ExitFailure)
	}
	return service.ExitOK
}

// report says the error and gives the exit code: the error's own, if it has one.
func report(to io.Writer, err error, code int) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) && code == service.ExitFailure {
		code = coded.ExitCode()
	}
	_, _ = fmt.Fprintln(to, "devstack:", err)
	return code
}
