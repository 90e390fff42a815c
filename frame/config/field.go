package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	listType     = reflect.TypeFor[[]string]()
	secretType   = reflect.TypeFor[Secret]()
)

// field is one variable of a config and where its value goes.
type field struct {
	variable   string
	required   bool
	fallback   string
	hasDefault bool
	min, max   string
	oneOf      []string
	format     Format
	doc        string
	value      reflect.Value
}

func (f *field) secret() bool { return f.value.Type() == secretType }

// fields lists the variables of a config struct, depth first. A tag that makes no sense is the program's mistake, not
// its user's, so it panics: any test that loads the config once finds it.
func fields(config reflect.Value, prefix string) []field {
	if config.Kind() == reflect.Pointer {
		config = config.Elem()
	}
	if config.Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: %s is not a struct or a pointer to one", config.Type()))
	}
	var list []field
	for i := range config.NumField() {
		structField := config.Type().Field(i)
		tag, tagged := structField.Tag.Lookup("env")
		switch {
		case !structField.IsExported():
		case tagged:
			list = append(list, newField(structField.Tag, prefix, tag, config.Field(i)))
		case structField.Type.Kind() == reflect.Struct:
			list = append(list, fields(config.Field(i), prefix+structField.Tag.Get("envPrefix"))...)
		}
	}
	return list
}

func newField(tags reflect.StructTag, prefix, tag string, value reflect.Value) field {
	name, option, _ := strings.Cut(tag, ",")
	if name == "" || (option != "" && option != "required") {
		panic(fmt.Sprintf("config: tag env:%q is not a name, with or without \",required\"", tag))
	}
	f := field{
		variable: prefix + name,
		required: option == "required",
		min:      tags.Get("min"),
		max:      tags.Get("max"),
		oneOf:    strings.Fields(tags.Get("oneof")),
		format:   Format(tags.Get("format")),
		doc:      tags.Get("doc"),
		value:    value,
	}
	f.fallback, f.hasDefault = tags.Lookup("envDefault")
	f.checkTags()
	return f
}

// checkTags parses the default (or some text of the right form) once into a value of its own, which uses every tag.
func (f *field) checkTags() {
	switch {
	case f.secret() && f.hasDefault:
		panic("config: " + f.variable + ": a secret has no default")
	case f.required && f.hasDefault:
		panic("config: " + f.variable + ": required, so its default is never used")
	case !f.format.known():
		panic("config: " + f.variable + ": unknown format " + string(f.format))
	}
	text := f.fallback
	if !f.hasDefault {
		text = cmp.Or(map[string]string{"duration": "1s", "integer": "1", "bool": "true"}[f.typeName()], "probe")
	}
	probe := *f
	probe.value = reflect.New(f.value.Type()).Elem()
	if p := probe.parse(text); p != nil && f.hasDefault {
		panic("config: default of " + p[0].String())
	}
}

// fileVariable is the variable that may name a file with the secret, "" for fields that are none.
func (f *field) fileVariable() string {
	if !f.secret() {
		return ""
	}
	return f.variable + "_FILE"
}
