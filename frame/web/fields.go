package web

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// field is what a member of a request must be.
type field struct {
	name     string
	typ      reflect.Type
	required bool
}

// fieldsOf reads the members of T off its struct tags. Embedded structs are not looked into: the generated types have
// none.
func fieldsOf[T any]() []field {
	var fields []field
	for f := range reflect.TypeFor[T]().Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		optional := f.Type.Kind() == reflect.Pointer || strings.Contains(options, "omit")
		fields = append(fields, field{name: name, typ: f.Type, required: !optional})
	}
	return fields
}

func kindInWords(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer in its range, without fraction or exponent"
	case reflect.Float32, reflect.Float64:
		return "a number in its range"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "what the API describes"
	}
}

func checkRequired(members map[string]jsontext.Kind, fields []field) error {
	var missing, null []Field
	for _, f := range fields {
		if !f.required {
			continue
		}
		kind, there := members[f.name]
		switch {
		case !there:
			missing = append(missing, Field{Code: CodeMissingMember, Pointer: "#/" + f.name, Detail: "is missing"})
		case kind == 'n':
			null = append(null, Field{Code: CodeWrongType, Pointer: "#/" + f.name, Detail: "must be " + kindInWords(f.typ)})
		}
	}
	switch {
	case missing != nil:
		return refuse(CodeMissingMember, "A member is missing.", append(missing, null...)...)
	case null != nil:
		return wrongType(null...)
	}
	return nil
}

func wrongType(fields ...Field) *Error {
	return refuse(CodeWrongType, "A member has a value of the wrong type.", fields...)
}

// semanticError says which of our members has the wrong type. Names that the client invented are not repeated.
func semanticError(err error, fields []field) *Error {
	if errors.Is(err, json.ErrUnknownName) {
		return refuse(CodeUnknownMember,
			"The body has a member that is not part of this request. Names are compared letter by letter.")
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return syntaxError(err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/")
	at := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if at < 0 {
		return wrongType()
	}
	return wrongType(Field{Code: CodeWrongType, Pointer: "#/" + name, Detail: "must be " + kindInWords(fields[at].typ)})
}
