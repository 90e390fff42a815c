package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
)

// program is a service with what it reads from its environment.
type program struct {
	name  string
	cfg   any
	rules []config.Rule
}

//go:embed intro.md
var intro string

// render writes the whole page: the variables that all programs read in the same way, then each one's own.
func render(programs ...program) string {
	var page strings.Builder
	page.WriteString(intro)
	described := make([][]config.Setting, len(programs))
	for i, p := range programs {
		described[i] = config.Describe(p.cfg)
	}
	common := func(s config.Setting) bool {
		return !slices.ContainsFunc(described, func(other []config.Setting) bool { return !slices.Contains(other, s) })
	}
	page.WriteString("\n## Every service\n\n")
	table(&page, slices.DeleteFunc(slices.Clone(described[0]), func(s config.Setting) bool { return !common(s) }))
	for i, p := range programs {
		fmt.Fprintf(&page, "\n## `%s`\n\n", p.name)
		table(&page, slices.DeleteFunc(slices.Clone(described[i]), common))
		fmt.Fprintf(&page, "\nWhat must hold between the variables of `%s`:\n\n", p.name)
		for _, rule := range p.rules {
			fmt.Fprintf(&page, "- `%s` %s.\n", rule.Variable, rule.Text)
		}
	}
	return page.String()
}

func table(page *strings.Builder, settings []config.Setting) {
	page.WriteString("| variable | type | default | bounds, format | what it does |\n|---|---|---|---|---|\n")
	for _, s := range settings {
		fallback := "-"
		switch {
		case s.Required:
			fallback = "**required**"
		case s.Default != "":
			fallback = "`" + s.Default + "`"
		}
		cells := []string{"`" + s.Variable + "`", s.Type, fallback, s.Limits, s.Doc}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		page.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
}
