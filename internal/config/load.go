package config

import (
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Load fills the struct that into points to from environ, which has the form of os.Environ. Where a variable is
// given twice the later one counts.
//
// The error is an [*Error] with every problem found: of single values, of the cross checks of a config with the method
// Rules, and of variables that nothing reads. Rules see values that have problems at their defaults, or at zero without
// one. The struct is then partly filled and not to be used. Nothing but X_FILE files is opened. A tag that cannot be
// understood panics.
func Load(environ []string, into any) error {
	texts := env.ToMap(environ)
	delete(texts, "") // nothing's name, and that of the file of what is no secret
	list := fields(reflect.ValueOf(into).Elem(), "")
	var problems []Problem
	checked := map[string]string{} // env would give others to fields without a tag and to members of lists
	for i := range list {
		problems = append(problems, list[i].load(texts, checked)...)
	}
	err := env.ParseWithOptions(into, env.Options{Environment: checked, FuncMap: parsers})
	if err != nil && problems == nil { // beside a problem env misses what is required
		panic("config: " + err.Error())
	}
	if ruled, ok := into.(interface{ Rules() []Rule }); ok {
		problems = append(problems, broken(ruled.Rules(), list, problems)...)
	}
	problems = append(problems, unknown(texts, list)...)
	if len(problems) > 0 {
		return &Error{Problems: problems}
	}
	return nil
}

// parsers are those that env lacks: its own takes an int for 32 bits.
var parsers = map[reflect.Type]env.ParserFunc{
	reflect.TypeFor[int](): func(text string) (any, error) { return strconv.Atoi(text) },
}

// field is one variable of a config and where its value goes.
type field struct {
	Setting  // without what depends on the value
	min, max string
	oneOf    []string
	format   Format
	value    reflect.Value
}

// fields lists the variables of a config struct, depth first. A tag that makes no sense is the program's mistake, not
// its user's, so it panics: any test that loads the config once finds it.
func fields(config reflect.Value, prefix string) []field {
	var list []field
	for structField, value := range config.Fields() {
		tags := structField.Tag
		tag, tagged := tags.Lookup("env")
		switch {
		case !structField.IsExported():
		case tagged:
			name, option, _ := strings.Cut(tag, ",")
			f := field{
				Setting: Setting{
					Variable: prefix + name, Type: typeOf(value), Default: tags.Get("envDefault"),
					Required: option == "required", Doc: tags.Get("doc"),
				},
				min: tags.Get("min"), max: tags.Get("max"), oneOf: strings.Fields(tags.Get("oneof")),
				format: Format(tags.Get("format")), value: value,
			}
			if _, known := formats[f.format]; !known || name == "" || (option != "" && !f.Required) || f.Type == "" ||
				value.Type() == reflect.TypeFor[[]netip.Prefix]() && f.format != "network" ||
				f.Default != "" && (f.Required || f.Type == "secret" || f.check(f.Default) != nil) {
				panic("config: the tags of " + structField.Name + " make no sense: " + string(tags))
			}
			list = append(list, f)
		case structField.Type.Kind() == reflect.Struct:
			list = append(list, fields(value, prefix+tags.Get("envPrefix"))...)
		}
	}
	return list
}

// fileVariable is the variable that may name a file with the secret, "" for fields that are none.
func (f *field) fileVariable() string {
	if f.Type != "secret" {
		return ""
	}
	return f.Variable + "_FILE"
}

// load checks the field's text and, if it is right, puts it into checked. Without one env takes the default.
func (f *field) load(texts, checked map[string]string) (problems []Problem) {
	text, set := texts[f.Variable]
	path, fromFile := texts[f.fileVariable()]
	switch {
	case set && fromFile:
		return f.problem(CodeBothSet, "%s is set as well; which one is meant?", f.fileVariable())
	case fromFile:
		text, problems = f.readFile(path)
	case !set && f.Required:
		return f.problem(CodeMissing, "required; %s", f.Doc)
	case !set, text == "" && f.Type == "secret" && !f.Required:
		return nil // an optional secret may be there and empty: that is how compose and CI pass on "none"
	default:
		problems = f.check(text)
	}
	if len(f.oneOf) > 0 {
		text = strings.ToLower(text) // DEBUG is debug
	}
	if problems == nil {
		checked[f.Variable] = text
	}
	return problems
}

// unknown reports variables that begin like one of ours and are no settings: mostly misspelt, and then the default
// runs in production unnoticed. Our prefixes are the first words of the config's variables: OUTBOX_, KAFKA_.
func unknown(texts map[string]string, list []field) (problems []Problem) {
	names, prefixes := map[string]bool{}, map[string]bool{}
	for i := range list {
		for _, name := range []string{list[i].Variable, list[i].fileVariable()} {
			names[name] = true
			if word, _, ok := strings.Cut(name, "_"); ok {
				prefixes[word] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		word, _, ok := strings.Cut(name, "_")
		_, isRetired := retired[name]
		if ok && prefixes[word] && !names[name] && !isRetired && !foreign(name, texts[name]) {
			problems = append(problems, Problem{Variable: name, Code: CodeUnknown, Detail: "nothing reads it"})
		}
	}
	return problems
}

// injected matches what Kubernetes sets in every container for each service of the namespace: a service called
// "kafka" makes KAFKA_SERVICE_HOST, KAFKA_SERVICE_PORT_CLIENT, KAFKA_PORT, KAFKA_PORT_9092_TCP_ADDR and more.
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)$`)

// foreign reports whether the variable belongs to another program in spite of its first word. Kubernetes' X_PORT
// holds a URL (tcp://10.0.0.7:9092); with anything else it is a person's mistake for X_ADDR. Of OpenTelemetry's
// variables, which are often set for all programs of a machine alike, a service reads a few.
func foreign(name, value string) bool {
	return name == "HTTP_PROXY" || strings.HasPrefix(name, "OTEL_") || injected.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}
