// Command scaffold makes what a new service, event or consumer begins as, from the templates beside it, and puts the
// lines that make it known at the markers of the files that list such things. It makes each of them once: what it has
// made is the owner's, and it never looks at it again.
//
//	scaffold service  -name loyalty -port 8083
//	scaffold event    -name PointsGranted -topic loyalty.points.v1 -service loyalty
//	scaffold consumer -service loyalty -event UserRegistered
//	scaffold guide
//
// With -dry-run it prints the change and makes none; -force lets it work in a tree with changes that git has not been
// told of. The last one follows docs/building.md in a copy of the tree. `make new-service`, `make new-event`,
// `make new-consumer` and `make guide` call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"example.com/twinbox/dev/tools/parts"
)

var errUsage = errors.New(`what is made is described by
  make new-service NAME=loyalty PORT=8083
  make new-event NAME=PointsGranted TOPIC=loyalty.points.v1 SERVICE=loyalty
  make new-consumer SERVICE=loyalty EVENT=UserRegistered
DRY_RUN=1 shows the change and makes none, FORCE=1 takes a tree with changes`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Stdout, ".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scaffold:", err)
		os.Exit(1)
	}
}

// order is what is to be made.
type order struct {
	kind                  string // service, event or consumer
	name, port            string // of a service; the name of an event, too
	topic, service, event string
	dryRun, force         bool
}

func command(ctx context.Context, out io.Writer, root string, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	o := order{kind: args[0]}
	flags := flag.NewFlagSet(o.kind, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.dryRun, "dry-run", false, "")
	flags.BoolVar(&o.force, "force", false, "")
	var wanted []*string
	text := func(field *string, name string) {
		flags.StringVar(field, name, "", "")
		wanted = append(wanted, field)
	}
	switch o.kind {
	case "service":
		text(&o.name, "name")
		text(&o.port, "port")
	case "event":
		text(&o.name, "name")
		text(&o.topic, "topic")
		text(&o.service, "service")
	case "consumer":
		text(&o.service, "service")
		text(&o.event, "event")
	case "guide":
		return guide(ctx, out, root)
	default:
		return errUsage
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	for _, field := range wanted {
		if *field == "" {
			return errUsage
		}
	}
	return o.make(ctx, out, root)
}

// make makes it in the tree at root.
func (o order) make(ctx context.Context, out io.Writer, root string) error {
	tree, err := parts.Read(root)
	if err != nil {
		return err
	}
	made, err := o.plan(tree)
	if err != nil {
		return err
	}
	if len(made.created)+len(made.changed) == 0 {
		_, err := fmt.Fprintln(out, "nothing to do: all of it is there")
		return err
	}
	if o.dryRun {
		return made.diff(ctx, out, tree)
	}
	if !o.force {
		if err := refuseChanges(ctx, root); err != nil {
			return err
		}
	}
	if err := made.tree.Write(root); err != nil {
		return err
	}
	if o.kind == "service" {
		if err := run(ctx, io.Discard, root, "go", "generate", "./dev/tools/configdoc"); err != nil {
			return fmt.Errorf("the service is made, but not its part of docs/configuration.md: %w", err)
		}
		made.changed = append(made.changed, "docs/configuration.md")
	}
	return made.tell(out)
}

// plan is the tree with it. Nothing is written: what is refused is refused as a whole.
func (o order) plan(tree parts.Tree) (*work, error) {
	p, err := readProject(tree)
	if err != nil {
		return nil, err
	}
	switch o.kind {
	case "service":
		return p.service(o.name, o.port)
	case "event":
		return p.event(o.name, o.topic, o.service)
	}
	return p.consumer(o.service, o.event)
}
