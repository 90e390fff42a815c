package config

import (
	"fmt"
	"strings"
)

// A Rule is a cross check: what must hold between several variables. It is data, so that it can be checked and printed.
type Rule struct {
	Variable string // the one to change
	Text     string // what must hold, naming the other variables; it goes into the documentation
	Holds    bool   // for the values of this config
	Values   []any  // that Text speaks of, in its order; never a secret
}

// Broken makes a problem of each rule that does not hold.
func Broken(rules []Rule) []Problem {
	var problems []Problem
	for _, rule := range rules {
		if rule.Holds {
			continue
		}
		detail := rule.Text
		if len(rule.Values) > 0 {
			shown := make([]string, len(rule.Values))
			for i, value := range rule.Values {
				shown[i] = fmt.Sprint(value)
			}
			detail = strings.Join(shown, ", ") + ": " + rule.Text
		}
		problems = append(problems, Problem{Variable: rule.Variable, Code: CodeConflict, Detail: detail})
	}
	return problems
}
