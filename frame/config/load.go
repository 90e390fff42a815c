package config

import (
	"reflect"
	"slices"
	"strings"
)

// Validator is a config with cross checks. Load calls it after parsing the single values, also when some have
// problems: these stand at their defaults, or at zero without one.
type Validator interface{ Validate() []Problem }

// Load fills the struct that into points to from environ, which has the form of os.Environ. Where a variable is
// given twice the later one counts.
//
// The error is an [*Error] with every problem found. The struct is then partly filled and not to be used.
// Nothing but X_FILE files is opened. A tag that cannot be understood panics.
func Load(environ []string, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer {
		panic("config: Load needs a pointer to a struct")
	}
	env := index(environ)
	list := fields(target, "")
	var problems []Problem
	for i := range list {
		problems = append(problems, list[i].load(env)...)
	}
	problems = append(problems, validate(target, problems)...)
	problems = append(problems, unknown(env, list)...)
	if len(problems) > 0 {
		return &Error{Problems: problems}
	}
	return nil
}

func index(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// load finds the field's text and parses it. The default is set first, so that it also stands where the text is bad.
func (f *field) load(env map[string]string) []Problem {
	if f.hasDefault {
		if p := f.parse(f.fallback); p != nil {
			return p
		}
	}
	text, set := env[f.variable]
	path, fromFile := "", false
	if name := f.fileVariable(); name != "" {
		path, fromFile = env[name]
	}
	switch {
	case set && fromFile:
		return []Problem{*f.problem(CodeBothSet, "%s is set as well; which one is meant?", f.fileVariable())}
	case fromFile:
		if p := f.loadFile(path); p != nil {
			return []Problem{*p}
		}
		return nil
	case set && text == "" && f.secret() && !f.required:
		return nil // an optional secret: a variable that is there and empty is how compose and CI pass on "none"
	case set:
		return f.parse(text)
	case f.required:
		return []Problem{*f.problem(CodeMissing, "required; %s", f.doc)}
	}
	return nil
}

// validate runs the cross checks of the config and of the structs inside it. A problem of a variable that has one
// already is left out: it follows from the first.
func validate(target reflect.Value, found []Problem) []Problem {
	var problems []Problem
	for _, v := range validators(target) {
		for _, p := range v.Validate() {
			if !slices.ContainsFunc(found, func(q Problem) bool { return q.Variable == p.Variable }) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// validators lists the config and the structs inside it that have cross checks. An embedded struct's method is also,
// by promotion, the outer one's and would report twice; so the outer's stands alone, and one that hides the embedded
// one's method calls it itself.
func validators(target reflect.Value) []Validator {
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	var list []Validator
	own, ok := reflect.TypeAssert[Validator](target.Addr())
	if ok {
		list = append(list, own)
	}
	for i := range target.NumField() {
		structField := target.Type().Field(i)
		switch {
		case !structField.IsExported() || structField.Type.Kind() != reflect.Struct:
		case structField.Anonymous && ok:
		default:
			list = append(list, validators(target.Field(i))...)
		}
	}
	return list
}
