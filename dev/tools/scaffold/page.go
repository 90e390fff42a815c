package main

import (
	"fmt"
	"regexp"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// step is one block of the page: a file as the commands make it, or a change by hand.
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

// apply does one step: a file is what the commands made, a change is made.
func (s step) apply(tree parts.Tree) error {
	file, exists := tree[s.path]
	switch {
	case !exists:
		return fmt.Errorf("%s shows %s, which nothing makes", page, s.path)
	case !s.change && string(file.Content) != s.content:
		return fmt.Errorf("%s shows %s otherwise than it is made:\n%s", page, s.path, file.Content)
	case !s.change:
		return nil
	}
	after, err := s.changed(string(file.Content))
	if err != nil {
		return err
	}
	tree[s.path] = parts.File{Content: []byte(after), Mode: file.Mode}
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
