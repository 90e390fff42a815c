// Command twinbox operates a running system: dead letters, mails, inboxes, outboxes and the audit.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/service"
)

func main() {
	os.Exit(run(service.SignalContext(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exit := -1
	var commands Commands
	to := &streams{Answer: &commands.Answer, out: stdout, err: stderr}
	parser := kong.Must(&commands,
		kong.Name("twinbox"),
		kong.Description("The operator's command of services with outbox and inbox. "+
			"Settings are also variables, TWINBOX_*; the help names them. "+exitCodes),
		kong.PostBuild(withExamples),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.DefaultEnvars("TWINBOX"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(to, &commands.Connection),
		kong.BindToProvider((*Connection).asked),
		kong.Vars{"version": version()},
	)
	command, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		name := strings.TrimSpace("twinbox " + nameOf(commandOf(parser.Model.Node, args)))
		err = usage(fmt.Sprintf("%v; see %s --help", err, name))
	} else if err = checkFlags(command); err == nil {
		err = command.Run()
	}
	return to.report(args, err)
}

// checkFlags refuses an empty value, as from a script's unset variable, and a flag that is there twice. The variable of
// a flag may be empty.
func checkFlags(command *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, element := range command.Path {
		switch flag := element.Flag; {
		case element.Positional != nil && fmt.Sprint(element.Positional.Target.Interface()) == "":
			return usage(element.Positional.Name + " is empty")
		case flag == nil:
		case flag.Tag.Has("listener") && command.Selected().Tag.Has("alone"):
			return usage("--" + flag.Name + ": " + nameOf(command.Selected()) + " asks no service")
		case flag.IsCumulative():
		case command.FlagValue(flag) == "":
			return usage("--" + flag.Name + " is empty")
		case seen[flag]:
			return usage("--" + flag.Name + " is given twice")
		default:
			seen[flag] = true
		}
	}
	return nil
}

// A test parses these command lines.
//
//go:embed examples.txt
var exampleLines string

const (
	exampleHeading = "Examples:\n\n"
	exitCodes      = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 partly done."
)

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

func nameOf(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(nameOf(node.Parent) + " " + node.Name)
}

func version() string {
	build := "(unknown build)"
	if info, known := debug.ReadBuildInfo(); known {
		build = info.Main.Version
	}
	return fmt.Sprintf("twinbox %s, %s %s/%s", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
