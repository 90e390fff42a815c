package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// modulePath is a path that a Go module may have: a host or a plain word, then words.
var modulePath = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?` +
	`(/[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)*$`)

// rename is the tree as the module's own. Everything that is text is looked at: imports, module files, linter and
// Docker settings, generator directives, pages.
//
// The first rename also gives the project its name, in every place that another project made from the same tree would
// share with it: see docs/building.md. Later ones find names that others know, and replace the module path alone.
func rename(tree parts.Tree, module, name string) (parts.Tree, error) {
	if !modulePath.MatchString(module) {
		return nil, fmt.Errorf("%q is not a module path; try github.com/you/name", module)
	}
	old, err := tree.Module()
	if err != nil {
		return nil, err
	}
	var names *naming
	switch {
	case old == firstModule && cmp.Or(name, nameOf(module)) != firstName:
		n, err := newNaming(tree, module, name)
		if err != nil {
			return nil, err
		}
		names = &n
	case name != "" && old != firstModule:
		return nil, errors.New("the project has its name: only the first time gives one")
	}
	renamed := make(parts.Tree, len(tree))
	for at, file := range tree {
		to, content, err := renameFile(at, file, old, module, names)
		if err != nil {
			return nil, err
		}
		renamed[to] = parts.File{Content: content, Mode: file.Mode}
	}
	return renamed, nil
}

// placeholder stands for the new module path while names are replaced, because the path may hold the old name. It is a
// path as well: what is formatted with it has its imports in the same order.
const placeholder = "new.invalid/module"

func renameFile(at string, file parts.File, old, module string, names *naming) (_ string, content []byte, err error) {
	if names == nil || bytes.IndexByte(file.Content, 0) >= 0 {
		return at, replace(file.Content, old, module), nil
	}
	content = replace(file.Content, old, placeholder)
	to := names.path(at)
	if path.Ext(at) == ".go" {
		content, err = names.source(to, content)
	} else {
		content = names.text(content)
	}
	return to, bytes.ReplaceAll(content, []byte(placeholder), []byte(module)), err
}

// replace exchanges whole occurrences of the path in text, in addresses as well: schemas and problems are named by one
// below the module's path. What holds a NUL byte is no text.
func replace(content []byte, old, module string) []byte {
	if bytes.IndexByte(content, 0) >= 0 {
		return content
	}
	var out bytes.Buffer
	written := 0
	for from := 0; ; {
		at := bytes.Index(content[from:], []byte(old))
		if at < 0 {
			break
		}
		at += from
		from = at + len(old)
		if before := content[:at]; continues(before[max(0, at-1):], "./") && !bytes.HasSuffix(before, []byte("://")) ||
			continues(content[from:], "") {
			continue
		}
		out.Write(content[written:at])
		out.WriteString(module)
		written = from
	}
	if written == 0 {
		return content
	}
	out.Write(content[written:])
	return out.Bytes()
}

// continues says whether a path may go on with the first character of the text: a letter, a digit, one of -_~ or of
// the others.
func continues(text []byte, others string) bool {
	if len(text) == 0 {
		return false
	}
	c := text[0]
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-_~"+others, c) >= 0
}
