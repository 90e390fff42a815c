package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// project is the tree, and the names that are its own: a clone's are others.
type project struct {
	tree parts.Tree

	Module     string // its path
	Project    string // the name of containers, images and sources
	Roles      string // of PostgreSQL: the name without hyphens
	Variables  string // of compose: the same in capitals
	TypePrefix string // begins the types of events
	SchemaBase string // begins the addresses of schemas
}

func readProject(tree parts.Tree) (*project, error) {
	module, err := tree.Module()
	if err != nil {
		return nil, err
	}
	p := &project{tree: maps.Clone(tree), Module: module}
	for _, fact := range []struct {
		into          *string
		file, pattern string
	}{
		{&p.Project, compose, `(?m)^name: (\S+)$`},
		{&p.TypePrefix, definitions, `Type:\s+"([^"]+)" \+ service`},
		{&p.SchemaBase, definitions, `DataSchema:\s+"([^"]+)" \+ name`},
	} {
		if *fact.into = p.first(fact.file, fact.pattern); *fact.into == "" {
			return nil, fmt.Errorf("%s does not say what %s looks for: was the tree's own form changed?",
				fact.file, fact.pattern)
		}
	}
	p.Roles = strings.ReplaceAll(p.Project, "-", "_")
	p.Variables = strings.ToUpper(p.Roles)
	return p, nil
}

// first is the first group of the pattern's first match in a file; empty: there is none.
func (p *project) first(file, pattern string) string {
	found := regexp.MustCompile(pattern).FindSubmatch(p.tree[file].Content)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// services are those of the list.
func (p *project) services() (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^\t\t(\w+)\.Service\.Describe\(\),$`).
		FindAllSubmatch(p.tree[markService.file].Content, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

// checkService refuses a service that is not in the list.
func (p *project) checkService(name string) error {
	if names := p.services(); !slices.Contains(names, name) {
		return fmt.Errorf("there is no service %q in %s, only %s; make new-service makes one", name, markService.file,
			strings.Join(names, ", "))
	}
	return nil
}

// topics are the constants of topics by their names.
func (p *project) topics() map[string]string {
	list := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^\tTopic(\w+)\s+= "([^"]+)"$`).FindAllSubmatch(
		p.tree[definitions].Content, -1) {
		list["Topic"+string(found[1])] = string(found[2])
	}
	return list
}

// definition is where an event is defined: its topic's constant and its source's.
func (p *project) definition(event string) (topic, source string, found bool) {
	match := regexp.MustCompile(`(?s)\b` + event + `\s+= define\[domain\.\w+\]\(\s*(\w+), (\w+),`).FindSubmatch(
		p.tree[definitions].Content)
	if match == nil {
		return "", "", false
	}
	return string(match[1]), string(match[2]), true
}

// filesOf are a service's Go files, tests apart, in order.
func (p *project) filesOf(service string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.tree)) {
		if below, is := strings.CutPrefix(name, "internal/"+service+"/"); is && strings.HasSuffix(below, ".go") &&
			!strings.Contains(below, "/") && !strings.HasSuffix(below, "_test.go") {
			names = append(names, name)
		}
	}
	return names
}

// holding is the first of the files with the text, and what the file says.
func (p *project) holding(files []string, text string) (name, content string) {
	for _, name := range files {
		if content := string(p.tree[name].Content); strings.Contains(content, text) {
			return name, content
		}
	}
	return "", ""
}
