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

// A Problem is a mistake in one variable, without secret values.
type Problem struct{ Variable, Detail string }

// An Error holds all mistakes of an environment.
type Error struct{ Problems []Problem }

// Error returns each problem on a line.
func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("read configuration: %d problem(s)", len(e.Problems))}
	for _, p := range e.Problems {
		lines = append(lines, p.Variable+": "+p.Detail)
	}
	return strings.Join(lines, "\n  ")
}

// ExitCode is the exit status for a wrong configuration.
func (e *Error) ExitCode() int { return 2 }

// A Rule is a cross check of several variables, as data.
type Rule struct {
	Variable string // the one to change
	Text     string // what must hold, with the names of the other variables
	Holds    bool   // for the values of this config
}

// Load fills the struct that into points to from environ, in the form of os.Environ; a variable's last value counts.
// The error is an [*Error] with every problem; then the struct is not usable. It opens only X_FILE files.
func Load(environ []string, into any) error {
	texts := env.ToMap(environ)
	list := fields(reflect.ValueOf(into).Elem(), "")
	var problems []Problem
	for i := range list {
		if err := list[i].load(texts); err != nil {
			problems = append(problems, Problem{list[i].Variable, err.Error()})
		}
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
	prefix  string
	value   reflect.Value
	alone   reflect.Type // a struct of this field alone: env's errors do not name the variable
}

func fields(config reflect.Value, prefix string) (list []field) {
	for member, value := range config.Fields() {
		tag := member.Tag
		name, tagged := tag.Lookup("env")
		switch {
		case !member.IsExported():
		case tagged:
			name, option, _ := strings.Cut(name, ",")
			list = append(list, field{
				Setting: Setting{
					Variable: prefix + name, Type: typeOf(value), Default: tag.Get("envDefault"),
					Required: option == "required", Limits: limitsOf(tag, value), Doc: tag.Get("doc"),
				},
				tag: tag, prefix: prefix, value: value,
				alone: reflect.StructOf([]reflect.StructField{{Name: member.Name, Type: member.Type, Tag: tag}}),
			})
		case member.Type.Kind() == reflect.Struct:
			list = append(list, fields(value, prefix+tag.Get("envPrefix"))...)
		}
	}
	return list
}

func (f *field) load(texts map[string]string) error {
	text, set, err := f.lookUp(texts)
	if err != nil {
		return err
	}
	environment := map[string]string{}
	if set {
		words := strings.Fields(f.tag.Get("oneof"))
		if i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, text) }); i >= 0 {
			text = words[i]
		}
		if err := f.checkText(text); err != nil {
			return err
		}
		environment[f.Variable] = text
	}
	parsed := reflect.New(f.alone)
	err = env.ParseWithOptions(parsed.Interface(), env.Options{Environment: environment, Prefix: f.prefix})
	if wrong, is := errors.AsType[env.ParseError](err); is {
		return wrong.Err
	}
	if err != nil {
		return errors.New("is required: " + f.Doc)
	}
	value := parsed.Elem().Field(0)
	if set {
		err = f.checkBounds(value)
	}
	if err == nil {
		f.value.Set(value)
	}
	return err
}

func (f *field) lookUp(texts map[string]string) (text string, set bool, err error) {
	text, set = texts[f.Variable]
	if f.Type != "secret" {
		return text, set, nil
	}
	path, inFile := texts[f.Variable+"_FILE"]
	switch {
	case text != "" && inFile:
		return "", false, errors.New("is set, and so is " + f.Variable + "_FILE")
	case inFile:
		if text, err = readSecret(path); err != nil {
			err = fmt.Errorf("%s_FILE: %w", f.Variable, err)
		}
		return text, true, err
	}
	// Compose and CI pass an unset optional secret as an empty one.
	return text, set && (text != "" || f.Required), nil
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
		for i := range list {
			if slices.Contains(names, list[i].Variable) {
				values = append(values, list[i].Variable+"="+list[i].show())
			}
		}
		problems = append(problems, Problem{rule.Variable, rule.Text + " (" + strings.Join(values, ", ") + ")"})
	}
	return problems
}

// findUnknown reports unread variables with the first word of one of ours: mostly misspelt, so the default would run
// unnoticed.
func findUnknown(texts map[string]string, list []field) (problems []Problem) {
	names, prefixes := map[string]bool{}, map[string]bool{}
	for i := range list {
		name := list[i].Variable
		names[name] = true
		names[name+"_FILE"] = list[i].Type == "secret"
		if word, _, ok := strings.Cut(name, "_"); ok || list[i].Type == "secret" {
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

// injected matches variables that Kubernetes sets for each service.
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)$`)

// isForeign: Kubernetes' X_PORT holds a URL; any other value is a mistake for X_ADDR. OTEL_ variables are often set for
// all programs of a machine.
func isForeign(name, value string) bool {
	return name == "HTTP_PROXY" || strings.HasPrefix(name, "OTEL_") || injected.MatchString(name) ||
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
