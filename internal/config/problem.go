package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Code names a kind of problem. The names are stable: scripts and tests may compare them.
type Code string

// The codes of a [Problem], beside those of formats.
const (
	CodeMissing          Code = "missing"           // required and not set
	CodeEmpty            Code = "empty"             // set to nothing
	CodeSurroundingSpace Code = "surrounding_space" // blanks, tabs, CR or LF around the value
	CodeQuoted           Code = "quoted"            // quotes around the value: the shell's or the file's, left in
	CodeNotText          Code = "not_text"          // control, format or unassigned characters, or invalid UTF-8
	CodeUnknown          Code = "unknown_variable"  // one of our prefixes, but no setting
	CodeInvalidDuration  Code = "invalid_duration"
	CodeInvalidInteger   Code = "invalid_integer"
	CodeInvalidBool      Code = "invalid_bool"
	CodeOutOfRange       Code = "out_of_range"
	CodeTooShort         Code = "too_short"
	CodeTooLong          Code = "too_long"
	CodeNotAllowed       Code = "not_allowed" // none of the words allowed
	CodeEmptyEntry       Code = "empty_entry"
	CodeDuplicateEntry   Code = "duplicate_entry"
	CodeBothSet          Code = "both_set" // X and X_FILE
	CodeFileUnreadable   Code = "file_unreadable"
	CodeFileNotRegular   Code = "file_not_regular"
	CodeFileTooLarge     Code = "file_too_large"
	CodeConflict         Code = "conflict" // two settings that cannot hold together; for cross checks
)

// A Problem is one thing wrong with one variable. Detail never holds the value of a secret.
type Problem struct {
	Variable string
	Code     Code
	Detail   string
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s: %s", p.Variable, p.Code, p.Detail) }

// An Error is everything that is wrong with an environment, in the order of the config's fields.
type Error struct {
	Problems []Problem
}

// Error lists every problem on a line of its own.
func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("read configuration: %d problem(s)", len(e.Problems))}
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n  ")
}

// ExitCode is the status with which a process ends that cannot use its configuration.
func (e *Error) ExitCode() int { return 2 }

// A Rule is a cross check: what must hold between several variables. It is data, so that it can be checked and printed.
type Rule struct {
	Variable string // the one to change
	Text     string // what must hold, naming the other variables; it goes into the documentation
	Holds    bool   // for the values of this config
}

// named finds the variables that a rule speaks of.
var named = regexp.MustCompile(`[A-Z][A-Z0-9]*(_[A-Z0-9]+)+`)

// broken makes a problem of each rule that does not hold, with the values of all variables that it names. A variable
// that has a problem already is left out: this one follows from that.
func broken(rules []Rule, list []field, found []Problem) (problems []Problem) {
	for _, rule := range rules {
		if rule.Holds || slices.ContainsFunc(found, func(p Problem) bool { return p.Variable == rule.Variable }) {
			continue
		}
		var values []string
		for _, name := range append([]string{rule.Variable}, named.FindAllString(rule.Text, -1)...) {
			if i := slices.IndexFunc(list, func(f field) bool { return f.Variable == name }); i >= 0 {
				values = append(values, name+"="+list[i].show())
			}
		}
		detail := rule.Text + " (" + strings.Join(values, ", ") + ")"
		problems = append(problems, Problem{Variable: rule.Variable, Code: CodeConflict, Detail: detail})
	}
	return problems
}
