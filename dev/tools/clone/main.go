// Command clone makes a project of one's own of the tree, and brings a newer tree to it. The targets new, upgrade and
// test-parts of the Makefile call it in the root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

const usage = `usage:
  make new MODULE=github.com/you/name [NAME=name] [DIR=../name] [WITHOUT="ops bench"]
  make upgrade FROM=<folder, address, tag or commit> [DRY_RUN=1]
`

var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Stdout, os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "clone:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var o order
	var from string
	var dryRun bool
	switch args[0] {
	case "new":
		flags.StringVar(&o.module, "module", "", "")
		flags.StringVar(&o.name, "name", "", "")
		flags.StringVar(&o.dir, "dir", "", "")
		flags.StringVar(&o.without, "without", "", "")
		flags.StringVar(&o.commit, "commit", "", "")
	case "upgrade":
		flags.StringVar(&from, "from", "", "")
		flags.BoolVar(&dryRun, "dry-run", false, "")
	case "test":
		flags.StringVar(&o.without, "without", "", "")
	default:
		return errUsage
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	switch {
	case args[0] == "test":
		return testParts(ctx, out, ".", o.without)
	case args[0] == "new" && o.module != "":
		return makeClone(ctx, out, ".", o)
	case args[0] == "upgrade" && from != "":
		return upgrade(ctx, out, ".", from, dryRun)
	}
	return errUsage
}
