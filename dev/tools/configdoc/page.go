package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
)

type program struct {
	name     string
	settings []config.Setting
	rules    []config.Rule
}

//go:embed intro.md
var intro string

// render writes the variables of all programs first, then each program's own.
func render(programs ...program) string {
	var page strings.Builder
	page.WriteString(intro)
	common := func(s config.Setting) bool {
		return !slices.ContainsFunc(programs, func(other program) bool { return !slices.Contains(other.settings, s) })
	}
	page.WriteString("\n## Every service\n\n")
	table(&page, slices.DeleteFunc(slices.Clone(programs[0].settings), func(s config.Setting) bool { return !common(s) }))
	for _, p := range programs {
		fmt.Fprintf(&page, "\n## `%s`\n\n", p.name)
		table(&page, slices.DeleteFunc(slices.Clone(p.settings), common))
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
