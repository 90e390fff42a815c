package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/services"
)

type program struct {
	name     string
	settings []config.Setting
	rules    []config.Rule
}

//go:embed configuration.md
var intro string

func configuration() string {
	var programs []program
	for _, s := range services.All() {
		unset := s.Unset()
		programs = append(programs, program{s.Name, unset.Variables, unset.Rules()})
	}
	return render(programs...)
}

// render writes the variables and rules of all programs first, then each program's own.
func render(programs ...program) string {
	if len(programs) == 0 {
		return intro
	}
	every := program{"Every service", programs[0].settings, programs[0].rules}
	for _, p := range programs {
		every.settings, every.rules = filter(every.settings, p.settings, true), filter(every.rules, p.rules, true)
	}
	var page strings.Builder
	page.WriteString(intro)
	every.write(&page)
	for _, p := range programs {
		own := program{"`" + p.name + "`", filter(p.settings, every.settings, false), filter(p.rules, every.rules, false)}
		own.write(&page)
	}
	return page.String()
}

// filter returns the items of a list that the other has (in), or has not.
func filter[T comparable](list, other []T, in bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(item T) bool { return slices.Contains(other, item) != in })
}

func (p program) write(page *strings.Builder) {
	fmt.Fprintf(page, "\n## %s\n\n", p.name)
	page.WriteString("| variable | default | bounds, format | what it does |\n|---|---|---|---|\n")
	for _, s := range p.settings {
		fallback := "-"
		switch {
		case s.Required:
			fallback = "**required**"
		case s.Default != "":
			fallback = "`" + s.Default + "`"
		}
		limits := s.Limits
		if slices.Contains([]string{"bool", "list", "secret"}, s.Type) { // the default shows the others
			limits = strings.TrimSuffix(s.Type+", "+limits, ", ")
		}
		cells := []string{"`" + s.Variable + "`", fallback, limits, s.Doc}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		page.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	page.WriteString("\nWhat must hold between these variables:\n\n")
	for _, rule := range p.rules {
		fmt.Fprintf(page, "- `%s` %s.\n", rule.Variable, rule.Text)
	}
}
