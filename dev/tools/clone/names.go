package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// The name and the module of the tree before a clone is renamed. Written in two pieces: a rename changes this file like
// every other, and these two must stay.
const (
	firstName   = "twin" + "box"
	firstModule = "example.com/" + firstName
)

// projectName is what containers, variables, roles and folders are named after. Its length is bounded by what is made
// of it: a path of a socket has at most 107 bytes.
var projectName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

const longestName = 24

// definitions is where the topics are named; those of an example are in its own contract.
const (
	definitions = "internal/contract/definitions.go"
	ofAnExample = "examples/*/contract/*.go"
)

// nameOf takes the project's name from a module path: its last part that is not a version.
func nameOf(module string) string {
	parts := strings.Split(module, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && regexp.MustCompile(`^v[0-9]+$`).MatchString(last) {
		last = parts[len(parts)-2]
	}
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(last), "-"), "-")
}

// A naming replaces the first name in all its forms, and the names that are made of words alone.
type naming struct {
	name   string // kebab-case
	module string // its host, turned round, begins the types of events

	forms *strings.Replacer // every text that is replaced, the longest of those that begin at one place
}

// newNaming checks a name against the tree.
func newNaming(tree parts.Tree, module, name string) (naming, error) {
	if name == "" {
		name = nameOf(module)
	}
	n := naming{name: name, module: module}
	taken := name == "bench" || name == "examples"
	for file := range tree {
		taken = taken || strings.HasPrefix(file, "cmd/"+name+"/")
	}
	switch {
	case !projectName.MatchString(name) || len(name) > longestName:
		return n, fmt.Errorf("%q is no name for a project: up to %d lower-case letters, digits and hyphens, a letter first; "+
			"NAME=... gives another", name, longestName)
	case taken:
		return n, fmt.Errorf("%q is the name of something in the tree: NAME=... gives the project another", name)
	}
	forms := map[string]string{
		"com.example.":             n.reversed() + ".", // the types of events
		firstName + "_":            n.snake() + "_",    // roles and databases: a hyphen would have to be quoted
		firstName:                  n.name,
		upperFirst(firstName):      n.title(),
		strings.ToUpper(firstName): strings.ToUpper(n.snake()),
	}
	for file, source := range tree {
		if example, _ := path.Match(ofAnExample, file); !example && file != definitions {
			continue
		}
		for _, topic := range regexp.MustCompile(`(?m)^\tTopic\w+ += "([^"]+)"$`).FindAllSubmatch(source.Content, -1) {
			forms[string(topic[1])] = name + "." + string(topic[1])
		}
	}
	var pairs []string
	for _, form := range slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, form, forms[form])
	}
	n.forms = strings.NewReplacer(pairs...)
	return n, nil
}

// text renames in everything that is no Go, in one pass: what is put in is not looked at again.
func (n naming) text(content []byte) []byte { return []byte(n.forms.Replace(string(content))) }

// source renames in a Go file: strings and comments are text, identifiers stay identifiers.
func (n naming) source(path string, content []byte) ([]byte, error) {
	var out bytes.Buffer
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	written := 0
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		from := file.Offset(pos)
		var replaced []byte
		switch kind {
		case token.IDENT:
			replaced = n.identifier(literal)
		case token.STRING, token.COMMENT:
			replaced = n.text([]byte(literal))
		default:
			continue
		}
		if string(replaced) == literal {
			continue
		}
		out.Write(content[written:from])
		out.Write(replaced)
		written = from + len(literal)
	}
	out.Write(content[written:])
	formatted, err := format.Source(out.Bytes()) // longer names move what is aligned
	if err != nil {
		return nil, fmt.Errorf("rename in %s: %w", path, err)
	}
	return formatted, nil
}

// identifier renames one that holds the name. What is called by the name itself is the command: the name alone could be
// a keyword, or hide something.
func (n naming) identifier(literal string) []byte {
	camel := strings.ReplaceAll(n.title(), "-", "")
	literal = strings.ReplaceAll(literal, upperFirst(firstName), camel)
	return []byte(strings.ReplaceAll(literal, firstName, strings.ToLower(camel[:1])+camel[1:]+"CLI"))
}

// path renames files and folders.
func (n naming) path(path string) string { return strings.ReplaceAll(path, firstName, n.name) }

func (n naming) snake() string { return strings.ReplaceAll(n.name, "-", "_") }

func (n naming) title() string {
	var words []string
	for word := range strings.SplitSeq(n.name, "-") {
		words = append(words, upperFirst(word))
	}
	return strings.Join(words, "-")
}

// reversed is the module path as the types of events begin: github.com/you/name becomes com.github.you.name.
func (n naming) reversed() string {
	host, rest, _ := strings.Cut(n.module, "/")
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	if rest != "" {
		labels = append(labels, strings.Split(rest, "/")...)
	}
	return strings.ToLower(strings.Join(labels, "."))
}

func upperFirst(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
