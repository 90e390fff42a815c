// Command twinbox operates a running system: dead letters, mails, inboxes, outboxes, and what operators did.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/service"
)

// Commands are the subcommands.
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
	to := &streams{in: os.Stdin, out: stdout, err: stderr}
	parser := kong.Must(&Commands{},
		kong.Name("twinbox"),
		kong.Description("The operator's command of two services with outbox and inbox. "+
			"Settings are also variables, TWINBOX_*; the help names them. "+exitCodes),
		kong.PostBuild(withExamples),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.DefaultEnvars("TWINBOX"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(to),
		kong.Vars{"version": version()},
	)
	command, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		err = usage(fmt.Sprintf("%v; see %s --help", err, nameOf(commandOf(parser.Model.Node, args))))
	} else if err = checkFlags(command); err == nil {
		err = command.Run()
	}
	return to.report(args, err)
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

// exampleLines are command lines, each an example of the command that it runs. A test parses them.
//
//go:embed examples.txt
var exampleLines string

const (
	exampleHeading = "Examples:\n\n"
	exitCodes      = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 partly done."
)

// withExamples ends the help of each command with its examples.
func withExamples(parser *kong.Kong) error {
	for line := range strings.Lines(exampleLines) {
		command := commandOf(parser.Model.Node, strings.Fields(line)[1:])
		if !strings.Contains(command.Detail, exampleHeading) {
			command.Detail += exampleHeading
		}
		command.Detail += "  " + line
	}
	for _, command := range parser.Model.Leaves(true) {
		command.Detail += "\n" + exitCodes
	}
	return nil
}

// commandOf is the command that the words of a line name, as far as they do.
func commandOf(node *kong.Node, words []string) *kong.Node {
	for _, word := range words {
		for _, child := range node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				node = child
				break
			}
		}
	}
	return node
}

// nameOf is a command as it is typed.
func nameOf(node *kong.Node) string {
	if node.Parent == nil {
		return node.Name
	}
	return nameOf(node.Parent) + " " + node.Name
}

// version says what was built, with the commit where that is known, and with which Go.
func version() string {
	build := "(unknown build)"
	if info, known := debug.ReadBuildInfo(); known {
		build = info.Main.Version
	}
	return fmt.Sprintf("twinbox %s, %s %s/%s", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// CompletionCommand is "twinbox completion".
type CompletionCommand struct {
	Shell string `arg:"" help:"Of this shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is shown behind the command's own line.
func (CompletionCommand) Help() string {
	return "For this shell alone: source <(twinbox completion bash). For every new one, put that line into ~/.bashrc; " +
		"zsh takes it in ~/.zshrc, and fish takes twinbox completion fish | source.\n\n"
}

// What a shell runs at each tab: it hands the words of the line over, the one that is begun last, and takes the lines
// that come back for what may stand there. Where none comes back, it offers files.
var completions = map[string]string{
	"bash": `_twinbox() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _twinbox twinbox bin/twinbox ./bin/twinbox`,
	"zsh": `#compdef twinbox
_twinbox() {
	local -a found
	found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _twinbox twinbox bin/twinbox ./bin/twinbox`,
	"fish": `complete -c twinbox -a '(twinbox complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
}

// Run writes the shell's part.
func (c *CompletionCommand) Run(to *streams) error {
	to.say("%s", completions[c.Shell])
	return to.broken
}

// CompleteCommand is "twinbox complete", which the shells' parts call.
type CompleteCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run writes what may stand in the place of the last word: commands, flags, or the values of the flag before it.
func (c *CompleteCommand) Run(command *kong.Context, to *streams) error {
	line := append([]string{"", ""}, c.Words...)
	before, begun := line[len(line)-2], line[len(line)-1]
	node := commandOf(command.Model.Node, c.Words)
	var words []string
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, argument := range node.Positional {
		words = append(words, argument.EnumSlice()...)
	}
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		if name := "--" + flag.Name; strings.HasPrefix(begun, "-") {
			words = append(words, name)
		} else if before == name || before == "-"+string(flag.Short) {
			words = flag.EnumSlice()
		}
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if word != "" && strings.HasPrefix(word, begun) {
			to.say("%s", word)
		}
	}
	return to.broken
}
