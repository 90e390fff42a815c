package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/twinbox/dev/tools/parts"
)

// What runs in a tree that a part was left out of: everything is built and vetted, and the tests run that know
// services, pages, programs, containers or parts. The business's own need databases and brokers, and say that it still
// works.
var tested = []string{
	"./api", "./cmd/customer", "./cmd/notification", "./internal/...", "./migrations",
	"./test/tree", "./dev/tools/parts", "./dev/tools/scaffold", "./dev/tools/size", "./test/deploy",
}

// scaffolded are the commands that make a service, an event and its consumer.
var scaffolded = [][]string{
	{"run", "./dev/tools/scaffold", "service", "-name", "stock", "-port", "8150"},
	{"run", "./dev/tools/scaffold", "event", "-name", "StockCounted", "-topic", "stock.counts.v1", "-service", "stock"},
	{"run", "./dev/tools/scaffold", "consumer", "-service", "stock", "-event", "StockCounted"},
}

// testParts leaves each part out in turn, and at last all of them under another name, and runs what is left. The parts
// are named, or all.
func testParts(ctx context.Context, out io.Writer, root, names string) (err error) {
	tree, err := parts.Read(root)
	if err != nil {
		return err
	}
	module, err := tree.Module()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "parts-")
	if err != nil {
		return fmt.Errorf("test parts: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	orders := []order{}
	for name := range strings.FieldsSeq(names) {
		orders = append(orders, order{module: module, without: name})
	}
	if len(orders) == 0 {
		for _, name := range parts.Names() {
			orders = append(orders, order{module: module, without: name})
		}
		orders = append(orders, order{module: "github.com/acme/shop", without: strings.Join(parts.Names(), " ")})
	}
	dir := filepath.Join(work, "tree")
	for _, o := range orders {
		began := time.Now()
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("test parts: %w", err)
		}
		if err := testWithout(ctx, tree, o, dir); err != nil {
			return fmt.Errorf("without %s: %w", o.without, err)
		}
		if _, err := fmt.Fprintf(out, "without %s: ok, %.0f s\n", o.without, time.Since(began).Seconds()); err != nil {
			return err
		}
	}
	return nil
}

func testWithout(ctx context.Context, tree parts.Tree, o order, dir string) error {
	clone, _, err := derive(tree, o)
	if err != nil {
		return err
	}
	if err := clone.Write(dir); err != nil {
		return err
	}
	if err := settle(ctx, dir); err != nil {
		return err
	}
	// What is compiled in one copy serves the next: without the folder's name nothing else tells them apart.
	environ := []string{"GOFLAGS=-trimpath"}
	var all []string
	for _, module := range modules(clone["go.work"].Content) {
		all = append(all, module+"/...")
	}
	commands := [][]string{{"generate", "./dev/tools/configdoc"}}
	if o.without == strings.Join(parts.Names(), " ") { // a clone is built on: what its own commands make is tested with it
		commands = scaffolded
	}
	for _, args := range commands {
		if _, err := run(ctx, dir, environ, "go", args...); err != nil {
			return err
		}
	}
	if err := age(dir); err != nil {
		return err
	}
	for _, args := range [][]string{
		append([]string{"vet", "-tags", "faults"}, all...),
		append([]string{"test"}, tested...),
	} {
		if _, err := run(ctx, dir, environ, "go", args...); err != nil {
			return err
		}
	}
	if o.without == strings.Join(parts.Names(), " ") {
		return testDead(ctx, dir, o.module)
	}
	return nil
}

// age gives everything below dir one time. The copies stand in one place after each other, so go test knows the files
// that a test read, and takes its result from an earlier copy where these and the program are the same.
func age(dir string) error {
	long := time.Unix(1e9, 0)
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, long, long)
	})
}
