// Command twinbox operates a running system: dead letters, mails, inboxes, outboxes, and what operators did.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"example.com/twinbox/frame/service"
)

// Commands are the subcommands, one file each.
type Commands struct {
	Status   StatusCommand    `cmd:"" help:"Why each service waits, in one sentence, or that all is well."`
	Verify   VerifyCommand    `cmd:"" help:"Whether anything is lost, doubled, altered, invented or reordered between outbox, Kafka and inbox."`
	Trace    TraceCommand     `cmd:"" help:"The story of one user, event or mail, through all services, in the order of time."`
	DLQ      DLQCommands      `cmd:"" name:"dlq" help:"Operate the dead letters: events that a consumer could not handle."`
	Mail     MailCommands     `cmd:"" help:"Operate the mails that wait for an operator."`
	Inbox    InboxCommands    `cmd:"" help:"Look into the inboxes: which events were handled."`
	Consumer ConsumerCommands `cmd:"" help:"Pause consumers, and let them go on."`
	Outbox   OutboxCommands   `cmd:"" help:"Operate the outboxes: published and waiting events."`
	Audit    AuditCommand     `cmd:"" help:"What operators did, to what and why: the newest, in the order of time."`

	Demo    DemoCommand    `cmd:"" help:"Sign people up, with the faults you choose, and end with the verdict of verify."`
	Console ConsoleCommand `cmd:"" help:"Serve the operators' page: where events are, why they wait, what to do about it."`

	Completion CompletionCommand `cmd:"" help:"Print the script that completes commands and flags in a shell."`
	Complete   CompleteCommand   `cmd:"" hidden:""`

	Version kong.VersionFlag `help:"Say which build this is." env:"-"`
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
	to := streams{in: os.Stdin, out: stdout, err: stderr}
	parser, err := kong.New(&Commands{},
		kong.Name("twinbox"),
		kong.Description("The operator's command of two services with outbox and inbox. "+
			"Settings are also variables, TWINBOX_*; the help names them. "+exitCodes),
		kong.PostBuild(withExamples),
		kong.UsageOnError(),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.DefaultEnvars("TWINBOX"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(to),
		kong.Vars{"version": version()},
	)
	if err != nil {
		return report(to, args, err)
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		return report(to, args, usage(err.Error()+helpOf(err)))
	}
	if err := checkFlags(command); err != nil {
		return report(to, args, err)
	}
	if err := command.Run(); err != nil {
		return report(to, args, err)
	}
	return service.ExitOK
}

// helpOf says where the help is of the command that was begun.
func helpOf(err error) string {
	command := []string{"; see twinbox"}
	if parsing, is := errors.AsType[*kong.ParseError](err); is {
		for _, element := range parsing.Context.Path {
			if element.Command != nil {
				command = append(command, element.Command.Name)
			}
		}
	}
	return strings.Join(append(command, "--help"), " ")
}

// checkFlags refuses what would be ignored in silence: the first value of a flag that is given twice and takes one, and
// a condition that is empty, as of a script's variable that is not set. What is also a variable may be emptied.
func checkFlags(command *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, element := range command.Path {
		if element.Flag == nil || element.Flag.IsCumulative() {
			continue
		}
		if len(element.Flag.Envs) == 0 && command.FlagValue(element.Flag) == "" {
			return usage("--" + element.Flag.Name + " is empty")
		}
		if seen[element.Flag] {
			return usage("--" + element.Flag.Name + " is given twice")
		}
		seen[element.Flag] = true
	}
	return nil
}
