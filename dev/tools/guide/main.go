// Command guide follows docs/building.md: it makes the page's service in a copy of the tree, by the page's own steps,
// and runs there what would notice a service that is only half known. `make guide` calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// commands are the guide's last line, with the tests of everything that knows services, programs, pages or containers.
var commands = [][]string{
	{"go", "generate", "./dev/tools/configdoc"},
	{"go", "vet", "-tags", "faults", "./...", "./dev/..."},
	{"go", "vet", "./bench/..."},    // part: bench
	{"go", "vet", "./examples/..."}, // part: examples
	{
		"go", "test", "./internal/loyalty", "./internal/services", "./dev/local/...", "./internal/contract",
		"./dev/tools/configdoc", "./dev/tools/docs", "./frame/eventing",
		"./api", "./cmd/...", "./dev/cmd/...", "./dev/deploy", "./migrations",
	},
}

func main() {
	if err := follow(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "guide:", err)
		os.Exit(1)
	}
}

func follow(ctx context.Context, root string) (err error) {
	page, err := os.ReadFile(filepath.Join(root, "docs/building.md"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "guide-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyTree(root, dir); err != nil {
		return err
	}
	for _, s := range steps(string(page)) {
		if err := s.apply(dir); err != nil {
			return err
		}
		fmt.Println(s.path)
	}
	for _, command := range commands {
		fmt.Println(command)
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return nil
}

// notCopied are folders that are no sources.
var notCopied = []string{".git", ".twinbox", "bin", "node_modules"}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir() && slices.Contains(notCopied, entry.Name()):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o755)
	})
}
