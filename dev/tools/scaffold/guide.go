package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"time"

	"example.com/twinbox/dev/tools/parts"
)

// page is followed by guide: its commands are run, what it shows is compared with what they make, and the changes that
// it does by hand are done.
const page = "docs/building.md"

// checks are what would notice a service, an event or a consumer that is only half known: everything that knows
// services, programs, pages or containers, and what was made. The last test runs the whole system.
var checks = [][]string{
	{"go", "generate", "./dev/tools/configdoc"},
	{"go", "vet", "-tags", "faults", "./...", "./dev/..."},
	{
		"env", "GOWORK=off", "go", "tool", "-modfile=golangci-lint.mod", "golangci-lint", "run", "./cmd/loyalty",
		"./internal/...",
	},
	{
		"go", "test", "./internal/loyalty", "./internal/services", "./internal/contract", "./internal/domain",
		"./dev/tools/configdoc", "./test/tree", "./dev/tools/scaffold", "./api", "./cmd/...", "./dev/cmd/...",
		"./test/deploy", "./migrations",
	},
	{"go", "test", "./dev/local", "-run", "Guide|GivenTo|Ports"},
}

// guide follows the page in a copy of the tree.
func guide(ctx context.Context, out io.Writer, root string) (err error) {
	tree, err := parts.Read(root)
	if err != nil {
		return err
	}
	made, err := follow(tree)
	if errors.Is(err, errFollowed) {
		_, err := fmt.Fprintln(out, err)
		return err
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "guide-")
	if err != nil {
		return fmt.Errorf("copy tree: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := made.Write(dir); err != nil {
		return err
	}
	began := time.Now()
	for _, check := range checks {
		fmt.Fprintf(out, "%.0f s: %s\n", time.Since(began).Seconds(), strings.Join(check, " "))
		if err := run(ctx, out, dir, check[0], check[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// numbered is a migration, whose number follows the last one that there is.
var numbered = regexp.MustCompile(`/[0-9]{4}_`)

// errFollowed says that the page's steps have been done in the tree itself, which is the owner's now.
var errFollowed = errors.New(page + " has been followed in this tree: its service is yours, and the tests know it")

// follow is the tree after all that the page says, with a test that runs it.
func follow(tree parts.Tree) (parts.Tree, error) {
	text := string(tree[page].Content)
	orders, err := ordersOf(text)
	if err != nil {
		return nil, err
	}
	if _, made := tree[appOf(orders[0].name)]; made {
		return nil, errFollowed
	}
	for _, o := range orders {
		made, err := o.plan(tree)
		if err != nil {
			return nil, fmt.Errorf("%s: make new-%s: %w", page, o.kind, err)
		}
		for _, file := range append(made.created, made.changed...) {
			if !strings.Contains(text, "`"+numbered.ReplaceAllString(file, "/NNNN_")+"`") {
				return nil, fmt.Errorf("%s does not say that make new-%s writes %s", page, o.kind, file)
			}
		}
		tree = made.tree
		if again, err := o.plan(tree); err != nil || len(again.created)+len(again.changed) > 0 {
			return nil, fmt.Errorf("make new-%s a second time is not without effect: %w", o.kind, err)
		}
	}
	tree = maps.Clone(tree)
	for _, s := range steps(text) {
		if err := s.apply(tree); err != nil {
			return nil, err
		}
	}
	p, err := readProject(tree)
	if err != nil {
		return nil, err
	}
	test := work{tree: tree, values: p}
	test.create("dev/local/guide_test.go", "stack_test.go.tmpl")
	return test.tree, test.err
}

// ordersOf are the commands of the page that make something.
func ordersOf(text string) (list []order, err error) {
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, "make new-")
		if !is {
			continue
		}
		words := strings.Fields(rest)
		given := map[string]string{}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			given[name] = value
		}
		list = append(list, order{
			kind: words[0], name: given["NAME"], port: given["PORT"], topic: given["TOPIC"], service: given["SERVICE"],
			event: given["EVENT"],
		})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no command that makes anything", page)
	}
	return list, nil
}
