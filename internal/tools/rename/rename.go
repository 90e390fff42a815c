package main

import (
	"bytes"
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

// rename replaces the module path of the tree at dir by module and returns the files it changed. Everything that is
// text is looked at: imports, module files, linter and Docker settings, generator directives, pages. The path inside
// a URL (https://example.com/twinbox/...) is left alone: it names a schema, not a package, and names of schemas are
// known to others.
//
// All files are read and replaced in memory before the first is written.
func rename(dir, module string) ([]string, error) {
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
	changed := map[string][]byte{}
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
		if replaced := replace(content, old, module); !bytes.Equal(replaced, content) {
			changed[path] = replaced
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return write(changed)
}

func currentModule(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read module: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if module, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(module), nil
		}
	}
	return "", errors.New("go.mod has no module line")
}

// replace exchanges whole occurrences of the path in text; what holds a NUL byte is no text.
func replace(content []byte, old, module string) []byte {
	if bytes.IndexByte(content, 0) >= 0 || !bytes.Contains(content, []byte(old)) {
		return content
	}
	whole := regexp.MustCompile(`(^|[^A-Za-z0-9_~./-])` + regexp.QuoteMeta(old) + `([^A-Za-z0-9_~-]|$)`)
	with := []byte("${1}" + module + "${2}")
	// Twice: of two occurrences with one character between them the first match takes that character away.
	return whole.ReplaceAll(whole.ReplaceAll(content, with), with)
}

func write(changed map[string][]byte) ([]string, error) {
	paths := make([]string, 0, len(changed))
	for path, content := range changed {
		info, err := os.Stat(path)
		if err != nil {
			return paths, fmt.Errorf("write file: %w", err)
		}
		if err := os.WriteFile(path, content, info.Mode()); err != nil {
			return paths, fmt.Errorf("write file: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
