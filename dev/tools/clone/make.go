package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// order says what a clone is to be.
type order struct {
	module, name string
	without      string // names of parts
	dir          string // where it goes; empty: in place
	commit       string // of the tree, where that is known otherwise than from git
}

// derive is the tree as the order wants it, with the names of the parts that it does not have.
func derive(tree parts.Tree, o order) (clone parts.Tree, from origin, err error) {
	gone, err := parts.Parse(o.without)
	if err != nil {
		return nil, origin{}, err
	}
	from, again, err := originOf(tree)
	if err != nil {
		return nil, origin{}, err
	}
	left, err := tree.Without(gone...)
	if err != nil {
		return nil, origin{}, err
	}
	if clone, err = rename(left, o.module, o.name); err != nil {
		return nil, origin{}, err
	}
	if !again {
		from = origin{Commit: o.commit, Module: o.module, Name: cmp.Or(o.name, nameOf(o.module))}
	}
	for _, p := range gone {
		from.Without = append(from.Without, p.Name)
	}
	return clone, from, from.write(clone)
}

// makeClone makes the clone that is ordered of the tree at root, and says what was done.
func makeClone(ctx context.Context, out io.Writer, root string, o order) error {
	if o.commit == "" {
		commit, err := cleanCommit(ctx, root)
		if err != nil {
			return err
		}
		o.commit = commit
	}
	to := cmp.Or(o.dir, root)
	if o.dir != "" {
		if there, err := os.ReadDir(o.dir); err == nil && len(there) > 0 {
			return fmt.Errorf("%s is not empty", o.dir)
		}
	}
	tree, err := parts.Read(root)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		if tree, err = tracked(ctx, root, tree); err != nil {
			return err
		}
	}
	clone, from, err := derive(tree, o)
	if err != nil {
		return err
	}
	if err := clone.Write(to); err != nil {
		return err
	}
	removed, err := removeOld(root, to, tree, clone)
	if err != nil {
		return err
	}
	if len(from.Without) > 0 {
		if err := settle(ctx, to); err != nil {
			return err
		}
	}
	return tell(out, to, o, from, clone, removed)
}

// removeOld removes, where the clone takes the tree's place, what it does not have, with the folders that are empty
// then. It returns the paths.
func removeOld(root, to string, tree, clone parts.Tree) (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if _, kept := clone[name]; kept {
			continue
		}
		removed = append(removed, name)
		if root != to {
			continue
		}
		if err := os.Remove(filepath.Join(to, name)); err != nil {
			return removed, fmt.Errorf("remove %s: %w", name, err)
		}
		for folder := filepath.Dir(filepath.Join(to, name)); folder != filepath.Clean(to); folder = filepath.Dir(folder) {
			if os.Remove(folder) != nil { // something is in it
				break
			}
		}
	}
	return removed, nil
}

// settle brings the module files and the engine's face in line with what was left out. Without a network it takes a
// module cache that has what the tree needs, as its build does.
func settle(ctx context.Context, dir string) error {
	work, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return fmt.Errorf("list modules: %w", err)
	}
	for _, module := range modules(work) {
		if _, err := run(ctx, filepath.Join(dir, module), []string{"GOWORK=off"}, "go", "mod", "tidy"); err != nil {
			return err
		}
	}
	_, err = run(ctx, filepath.Join(dir, "dev/tools/engineapi"), nil, "go", "generate", ".")
	return err
}

var usedModule = regexp.MustCompile(`(?m)^\t(\.\S*)$`)

// modules are the folders of the modules of a workspace, as its go.work has them: ".", "./dev".
func modules(work []byte) (folders []string) {
	for _, used := range usedModule.FindAllSubmatch(work, -1) {
		folders = append(folders, string(used[1]))
	}
	return folders
}

// tell lists what the clone has and what it has not.
func tell(out io.Writer, dir string, o order, from origin, clone parts.Tree, removed []string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: module %s, %d files\n", dir, o.module, len(clone))
	for _, p := range parts.All {
		if slices.Contains(from.Without, p.Name) {
			fmt.Fprintf(&text, "  left out  %-10s %s\n", p.Name, p.What)
		} else {
			fmt.Fprintf(&text, "  kept      %-10s %s\n", p.Name, p.What)
		}
	}
	if from.Commit == "" {
		text.WriteString("There is no git here: make upgrade will not know what the clone was made of.\n")
	}
	folders := map[string]int{}
	for _, name := range removed {
		folders[filepath.Dir(name)]++
	}
	if len(from.Without) > 0 {
		text.WriteString("Gone, or under another name:\n")
		for _, folder := range slices.Sorted(maps.Keys(folders)) {
			fmt.Fprintf(&text, "  %4d  %s\n", folders[folder], folder)
		}
	}
	text.WriteString("Next: make generate test, and git commit\n")
	_, err := io.WriteString(out, text.String())
	return err
}
