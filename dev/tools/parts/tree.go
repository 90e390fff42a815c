package parts

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one of a tree.
type File struct {
	Content []byte
	Mode    fs.FileMode
}

// IsText reports whether the file is text, as git judges it.
func (f File) IsText() bool { return bytes.IndexByte(f.Content[:min(len(f.Content), 8000)], 0) < 0 }

// Tree holds files by their paths from its root, with slashes.
type Tree map[string]File

// skipped are folders whose files are no sources.
var skipped = map[string]bool{".git": true, ".twinbox": true, "bin": true, "node_modules": true}

// Read reads the sources below dir.
func Read(dir string) (Tree, error) {
	tree := Tree{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped[entry.Name()] && name != dir:
			return fs.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == ".git": // a worktree's is a file
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		tree[filepath.ToSlash(relative)] = File{Content: content, Mode: info.Mode().Perm()}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return tree, nil
}

// Write writes every file below dir that is not there as it is.
func (t Tree) Write(dir string) error {
	for name, file := range t {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if there, err := os.ReadFile(to); err == nil && bytes.Equal(there, file.Content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("write tree: %w", err)
		}
		if err := os.WriteFile(to, file.Content, file.Mode); err != nil {
			return fmt.Errorf("write tree: %w", err)
		}
	}
	return nil
}

// Module is the path of the tree's module.
func (t Tree) Module() (string, error) {
	file, exists := t["go.mod"]
	if !exists {
		return "", fmt.Errorf("read module: there is no go.mod")
	}
	for line := range strings.Lines(string(file.Content)) {
		if module, is := strings.CutPrefix(line, "module "); is {
			return strings.TrimSpace(module), nil
		}
	}
	return "", fmt.Errorf("read module: go.mod has no module line")
}

// packages are the folders with Go files that are no tests.
func (t Tree) packages() map[string]bool {
	found := map[string]bool{}
	for name := range t {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			found[path.Dir(name)] = true
		}
	}
	return found
}

// exists says whether there is a file or a folder of that path.
func (t Tree) exists(name string) bool {
	if _, is := t[name]; is {
		return true
	}
	for file := range t {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}
