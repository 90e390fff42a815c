package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// A Problem is a mistake in one variable. It shows no secret.
type Problem struct{ Variable, Detail string }

// An Error has all mistakes of an environment, each on a line.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("read configuration: %d problem(s)", len(e.Problems))}
	for _, p := range e.Problems {
		lines = append(lines, p.Variable+": "+p.Detail)
	}
	return strings.Join(lines, "\n  ")
}

func (e *Error) ExitCode() int { return 2 }

// A Rule is a cross check of several variables, as data.
type Rule struct {
	Variable string // the one to change
	Text     string // what must hold, with the names of the other variables
	Holds    bool   // for the values of this config
}

// Load fills the struct that into points to from environ, in the form of os.Environ; a variable's last value counts.
// The error is an [*Error] with every problem.
func Load(environ []string, into any) error {
	texts := env.ToMap(environ)
	list := fields(reflect.ValueOf(into).Elem(), "")
	checked := map[string]string{}
	var problems []Problem
	for _, f := range list {
		text, err := f.read(texts)
		if err != nil {
			problems = append(problems, Problem{f.Variable, err.Error()})
		} else if text != "" {
			checked[f.Variable] = text
		}
	}
	err := env.ParseWithOptions(into, env.Options{Environment: checked})
	if err != nil && problems == nil {
		return fmt.Errorf("set configuration: %w", err) // a default that its type does not take
	}
	if ruled, ok := into.(interface{ Rules() []Rule }); ok {
		problems = append(problems, findBroken(ruled.Rules(), list, problems)...)
	}
	problems = append(problems, findUnknown(texts, list)...)
	if len(problems) > 0 {
		return &Error{Problems: problems}
	}
	return nil
}

type field struct {
	Setting // without the value
	tag     reflect.StructTag
	value   reflect.Value
}

func fields(config reflect.Value, prefix string) (list []field) {
	for member, value := range config.Fields() {
		tag := member.Tag
		name, tagged := tag.Lookup("env")
		switch {
		case !member.IsExported():
		case tagged:
			name, option, _ := strings.Cut(name, ",")
			list = append(list, field{Setting{
				Variable: prefix + name, Type: typeOf(value), Default: tag.Get("envDefault"),
				Required: option == "required", Limits: limitsOf(tag, value), Doc: tag.Get("doc"),
			}, tag, value})
		case member.Type.Kind() == reflect.Struct:
			list = append(list, fields(value, prefix+tag.Get("envPrefix"))...)
		}
	}
	return list
}

// read returns the checked text of the variable, or of the file that X_FILE names; empty: not set.
func (f *field) read(texts map[string]string) (string, error) {
	text, set := texts[f.Variable]
	if f.Type == "secret" {
		path, inFile := texts[f.Variable+"_FILE"]
		switch {
		case inFile && text != "":
			return "", errors.New("is set, and so is " + f.Variable + "_FILE")
		case inFile:
			content, err := readSecret(path)
			if err != nil {
				return "", fmt.Errorf("%s_FILE: %w", f.Variable, err)
			}
			text, set = content, true
		case text == "" && !f.Required:
			set = false // Compose and CI pass an unset optional secret as an empty one
		}
	}
	if !set {
		if f.Required {
			return "", errors.New("is required: " + f.Doc)
		}
		return "", nil
	}
	words := strings.Fields(f.tag.Get("oneof"))
	if i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, text) }); i >= 0 {
		text = words[i]
	}
	return text, f.check(text, words)
}

var named = regexp.MustCompile(`[A-Z][A-Z0-9]*(_[A-Z0-9]+)+`)

// findBroken skips a rule about a variable that has a problem already.
func findBroken(rules []Rule, list []field, found []Problem) (problems []Problem) {
	for _, rule := range rules {
		names := append(named.FindAllString(rule.Text, -1), rule.Variable)
		if rule.Holds || slices.ContainsFunc(found, func(p Problem) bool { return slices.Contains(names, p.Variable) }) {
			continue
		}
		var values []string
		for _, f := range list {
			if slices.Contains(names, f.Variable) {
				values = append(values, f.Variable+"="+f.show())
			}
		}
		problems = append(problems, Problem{rule.Variable, rule.Text + " (" + strings.Join(values, ", ") + ")"})
	}
	return problems
}

// findUnknown reports unread variables with the first word of one of ours: most are misspelt.
func findUnknown(texts map[string]string, list []field) (problems []Problem) {
	names, prefixes := map[string]bool{}, map[string]bool{}
	for _, f := range list {
		names[f.Variable] = true
		names[f.Variable+"_FILE"] = f.Type == "secret"
		if word, _, ok := strings.Cut(f.Variable, "_"); ok || f.Type == "secret" {
			prefixes[word] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		word, _, ok := strings.Cut(name, "_")
		if ok && prefixes[word] && !names[name] && retired[name] == "" && !isForeign(name, texts[name]) {
			problems = append(problems, Problem{name, "nothing reads it"})
		}
	}
	return problems
}

// isForeign knows what Kubernetes sets for each service: X_SERVICE_HOST, X_PORT_80_TCP and others, and X_PORT to a URL.
func isForeign(name, value string) bool {
	return name == "HTTP_PROXY" || strings.HasPrefix(name, "OTEL_") ||
		strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT_") ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// retired variables of an earlier release do not stop a service.
var retired = map[string]string{
	"INBOX_GAP_WAIT":   "an event whose predecessor is missing is parked immediately",
	"KAFKA_EDGE":       "there is one way to Kafka, on watermill-kafka",
	"MAIL_CLAIM_BATCH": "a worker claims the row that it works on",
}

// Retired returns the set variables that only an earlier release read, with the reason.
func Retired(environ []string) map[string]string {
	found := maps.Clone(retired)
	texts := env.ToMap(environ)
	maps.DeleteFunc(found, func(name, _ string) bool { _, set := texts[name]; return !set })
	return found
}
