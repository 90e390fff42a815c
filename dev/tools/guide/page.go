package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// step is one block of the page: a whole file, or a change of one.
type step struct {
	path    string
	change  bool
	content string
}

// block is a line that names a file, and the code behind it.
var block = regexp.MustCompile("(?ms)^`([^`\n]+)`:\n```(\\w+)\n(.*?)^```$")

// steps reads what the page says to do, in its order.
func steps(page string) []step {
	var list []step
	for _, match := range block.FindAllStringSubmatch(page, -1) {
		list = append(list, step{path: match[1], change: match[2] == "diff", content: match[3]})
	}
	return list
}

// apply does one step in the tree at dir.
func (s step) apply(dir string) error {
	path := filepath.Join(dir, s.path)
	before, err := os.ReadFile(path)
	switch {
	case s.change && err != nil:
		return fmt.Errorf("change %s: %w", s.path, err)
	case !s.change && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create %s: it is there, or cannot be looked at: %w", s.path, err)
	}
	after := s.content
	if s.change {
		if after, err = s.changed(string(before)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create %s: %w", s.path, err)
	}
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return nil
}

// changed finds each part of the change by the lines that it keeps and takes away, as a reader does: they stand in the
// file together, once.
func (s step) changed(text string) (string, error) {
	for part := range strings.SplitSeq(s.content, "@@\n") {
		var old, replacement strings.Builder
		for line := range strings.Lines(part) {
			rest := line[min(1, len(line)-1):]
			switch line[0] {
			case '-':
				old.WriteString(rest)
			case '+':
				replacement.WriteString(rest)
			default:
				old.WriteString(rest)
				replacement.WriteString(rest)
			}
		}
		if count := strings.Count("\n"+text, "\n"+old.String()); count != 1 {
			return "", fmt.Errorf("change %s: these lines stand there %d times:\n%s", s.path, count, old.String())
		}
		text = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+old.String(), "\n"+replacement.String(), 1), "\n")
	}
	return text, nil
}
