package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// longestTail is how much of what a program wrote is told with its error.
const longestTail = 8000

// run runs a program and returns what it wrote; its error is the one that says why.
func run(ctx context.Context, dir string, environ []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		tail := out.String()[max(0, out.Len()-longestTail):]
		return out.String(), fmt.Errorf("%s %s in %s: %w: %s", name, strings.Join(args, " "), dir, err,
			strings.TrimSpace(tail+said.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, dir, nil, "git", args...)
}

// cleanCommit is the commit of the tree at dir. A tree with changes that no commit has is refused: what is done to it
// could not be undone, and nothing would know what the clone was made of. Empty: the tree is not in git.
func cleanCommit(ctx context.Context, dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		return "", nil //nolint:nilerr // a copy of the files
	}
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", errors.New("the tree has changes that are not committed; git status lists them")
	}
	return git(ctx, dir, "rev-parse", "HEAD")
}

// tracked is the tree without the files that git does not know, such as what was built.
func tracked(ctx context.Context, dir string, tree parts.Tree) (parts.Tree, error) {
	listed, err := git(ctx, dir, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	known := parts.Tree{}
	for name := range strings.SplitSeq(listed, "\x00") {
		if file, exists := tree[name]; exists {
			known[name] = file
		}
	}
	return known, nil
}
