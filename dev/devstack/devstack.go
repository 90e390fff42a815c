// Package devstack runs the system on a developer's machine: all in one process ("make run"), or a real Apache Kafka
// alone ("devstack kafka"). Extensions add flags, commands, services and programs; extensions.go lists them.
package devstack

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/services"
)

type Commands struct {
	Run   RunCommand   `cmd:"" help:"Run the whole system: services, PostgreSQL, Kafka broker, mailbox."`
	Kafka KafkaCommand `cmd:"" help:"Run a real Apache Kafka, one node, until it is stopped. Needs java and, once, mvn."`
	Reset ResetCommand `cmd:"" help:"Throw away all local data, unless a system runs on it."`

	Extensions kong.Plugins `embed:""`
}

// Main runs the command line of this process and returns the exit code.
func Main(more ...local.Extension) int {
	ctx := service.SignalContext(context.Background())
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a closed terminal changes nothing
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	return Run(ctx, os.Args[1:], os.Stdout, os.Stderr, more...)
}

// Run runs one command and returns the exit code: 0 done, 1 failed, 2 usage. Results go to stdout, texts for people to
// stderr. Programs of more start before the listed ones.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, more ...local.Extension) int {
	return run(ctx, args, stdout, stderr, slices.Concat(more, extensions()))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, extensions []local.Extension) int {
	return local.Execute(ctx, newCommands(extensions), args, stdout, stderr,
		kong.Name("devstack"),
		kong.Description("The whole system on one machine. Settings are also variables, TWINBOX_*; the help names them. "+
			"Exit codes: 0 done, 1 failed, 2 usage."),
		kong.DefaultEnvars("TWINBOX"),
	)
}

func newCommands(extensions []local.Extension) *Commands {
	c := &Commands{Run: RunCommand{extensions: extensions}}
	listening := services.All()
	for _, e := range extensions {
		listening = append(listening, e.Services...)
		if e.Flags != nil {
			c.Run.Extensions = append(c.Run.Extensions, e.Flags)
		}
		if e.Commands != nil {
			c.Extensions = append(c.Extensions, e.Commands)
		}
	}
	c.Run.Addresses = kong.Plugins{newAddresses(listening)}
	return c
}
