package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// run runs a program; its error says why. What is compiled in one copy of the tree serves the next: without
// the folder's name nothing else tells them apart.
func run(ctx context.Context, out io.Writer, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// refuseChanges refuses a tree with changes that git has not been told of: nothing could take back what is made without
// taking these back as well. What is staged is told.
func refuseChanges(ctx context.Context, root string) error {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return nil //nolint:nilerr // a copy of the files
	}
	var status bytes.Buffer
	if err := run(ctx, &status, root, "git", "status", "--porcelain"); err != nil {
		return err
	}
	for line := range strings.Lines(status.String()) {
		if len(line) > 1 && line[1] != ' ' {
			return fmt.Errorf("the tree has changes that git has not been told of, %s first: commit them or "+
				"`git add` them, so that what is made can be told from them and taken back; or say FORCE=1",
				strings.TrimSpace(line[2:]))
		}
	}
	return nil
}

// diff prints the change.
func (w *work) diff(ctx context.Context, out io.Writer, before parts.Tree) (err error) {
	dir, err := os.MkdirTemp("", "scaffold-")
	if err != nil {
		return fmt.Errorf("show change: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	old, now := parts.Tree{}, parts.Tree{}
	for _, name := range append(w.changed, w.created...) {
		now[name] = w.tree[name]
		if file, exists := before[name]; exists {
			old[name] = file
		}
	}
	for folder, tree := range map[string]parts.Tree{"a": old, "b": now} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return fmt.Errorf("show change: %w", err)
		}
		if err := tree.Write(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	err = run(ctx, out, dir, "git", "diff", "--no-index", "--no-color", "--no-prefix", "a", "b")
	if code, is := errors.AsType[*exec.ExitError](err); is && code.ExitCode() == 1 { // they differ
		return nil
	}
	return err
}

// tell lists what was done, for people.
func (w *work) tell(out io.Writer) error {
	var text strings.Builder
	for _, name := range w.created {
		fmt.Fprintln(&text, "created", name)
	}
	for _, name := range w.changed {
		fmt.Fprintln(&text, "changed", name)
	}
	fmt.Fprintln(&text, "next:  ", w.next)
	_, err := io.WriteString(out, text.String())
	return err
}
