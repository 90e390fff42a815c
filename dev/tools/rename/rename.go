package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// modulePath is a path that a Go module may have: a host or a plain word, then words.
var modulePath = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?` +
	`(/[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)*$`)

// skipped are folders whose files are not the project's sources.
var skipped = map[string]bool{".git": true, ".twinbox": true, "bin": true, "node_modules": true}

// rename makes the tree at dir the module's own and returns the files it changed, by the names they have then.
// Everything that is text is looked at: imports, module files, linter and Docker settings, generator directives, pages.
//
// The first rename also gives the project its name, in every place that another project made from the same tree would
// share with it: see docs/building.md. Later ones find names that others know, and replace the module path alone.
//
// All files are read and replaced in memory before the first is written.
func rename(dir, module, name string) ([]string, error) {
	if !modulePath.MatchString(module) {
		return nil, fmt.Errorf("%q is not a module path; try github.com/you/name", module)
	}
	old, err := currentModule(dir)
	if err != nil {
		return nil, err
	}
	if old == module {
		return nil, nil
	}
	changes := changes{}
	var names *naming
	if old == firstModule && cmp.Or(name, nameOf(module)) != firstName {
		n, err := newNaming(dir, module, name)
		if err != nil {
			return nil, err
		}
		names = &n
	} else if name != "" && old != firstModule {
		return nil, errors.New("the project has its name: only the first rename gives one")
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped[entry.Name()]:
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return changes.add(dir, path, content, old, module, names)
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return changes.write()
}

// placeholder stands for the new module path while names are replaced, because the path may hold the old name. It is a
// path as well: what is formatted with it has its imports in the same order.
const placeholder = "new.invalid/module"

// changes are the files to write, by the path that they have now.
type changes map[string]change

type change struct {
	path    string // from now on
	content []byte
}

// add replaces in one file and keeps it if that changes anything.
func (c changes) add(dir, path string, content []byte, old, module string, names *naming) error {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	after := change{path: relative, content: content}
	if names == nil || bytes.IndexByte(content, 0) >= 0 {
		after.content = replace(content, old, module)
	} else {
		after.content = replace(content, old, placeholder)
		after.path = names.path(relative)
		if filepath.Ext(path) == ".go" {
			after.content, err = names.source(relative, after.content)
		} else {
			after.content = names.text(after.content)
		}
		after.content = bytes.ReplaceAll(after.content, []byte(placeholder), []byte(module))
	}
	if err == nil && (after.path != relative || !bytes.Equal(after.content, content)) {
		after.path = filepath.Join(dir, after.path)
		c[path] = after
	}
	return err
}

func currentModule(dir string) (string, error) {
	content, err := readFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		if module, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(module), nil
		}
	}
	return "", errors.New("go.mod has no module line")
}

func readFile(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read module: %w", err)
	}
	return content, nil
}

// replace exchanges whole occurrences of the path in text, in addresses as well: schemas and problems are named by one
// below the module's path. What holds a NUL byte is no text.
func replace(content []byte, old, module string) []byte {
	if bytes.IndexByte(content, 0) >= 0 || !bytes.Contains(content, []byte(old)) {
		return content
	}
	whole := regexp.MustCompile(`(^|://|[^A-Za-z0-9_~./-])` + regexp.QuoteMeta(old) + `([^A-Za-z0-9_~-]|$)`)
	with := []byte("${1}" + module + "${2}")
	// Twice: of two occurrences with one character between them the first match takes that character away.
	return whole.ReplaceAll(whole.ReplaceAll(content, with), with)
}

// write writes every change and removes what has another path now, with the folders that are empty then.
func (c changes) write() ([]string, error) {
	paths := make([]string, 0, len(c))
	for old, after := range c {
		info, err := os.Stat(old)
		if err != nil {
			return paths, fmt.Errorf("write file: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(after.path), 0o755); err != nil {
			return paths, fmt.Errorf("write file: %w", err)
		}
		if err := os.WriteFile(after.path, after.content, info.Mode()); err != nil {
			return paths, fmt.Errorf("write file: %w", err)
		}
		paths = append(paths, after.path)
		if after.path == old {
			continue
		}
		if err := os.Remove(old); err != nil {
			return paths, fmt.Errorf("remove file: %w", err)
		}
		_ = os.Remove(filepath.Dir(old)) // fails while something is in it
	}
	return paths, nil
}
