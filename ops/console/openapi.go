package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// document is an OpenAPI document in JSON, as far as a page shows it. What people put in an order keeps that.
type document struct {
	Info       struct{ Title, Version, Description string }
	Servers    []struct{ URL, Description string }
	Security   []map[string][]string
	Paths      members[members[json.RawMessage]] // by path, by method
	Components map[string]map[string]json.RawMessage
}

// members are those of a JSON object, in their order.
type members[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads an object.
func (m *members[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errors.New("is no object"))
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		next := member[T]{Name: fmt.Sprint(name)}
		if err := decoder.Decode(&next.Value); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		*m = append(*m, next)
	}
	return nil
}

func (m members[T]) get(name string) (value T) {
	if i := slices.IndexFunc(m, func(other member[T]) bool { return other.Name == name }); i >= 0 {
		return m[i].Value
	}
	return value
}

// maxSteps bounds how many references lead from one to the next.
const maxSteps = 6

// find reads what stands somewhere, or where a reference there leads to; name is that place's.
func find[T any](d *document, text json.RawMessage) (value T, name string, err error) {
	for range maxSteps {
		var reference struct {
			Ref string `json:"$ref"`
		}
		if text == nil || bytes.HasPrefix(text, []byte("true")) { // a schema that allows everything
			return value, name, nil
		}
		if err := json.Unmarshal(text, &reference); err != nil {
			return value, name, fmt.Errorf("read document: %w", err)
		}
		if reference.Ref == "" {
			if err := json.Unmarshal(text, &value); err != nil {
				return value, name, fmt.Errorf("read document: %w", err)
			}
			return value, name, nil
		}
		kind, named, _ := strings.Cut(strings.TrimPrefix(reference.Ref, "#/components/"), "/")
		if text, name = d.Components[kind][named], named; text == nil {
			return value, name, fmt.Errorf("read document: %s leads nowhere", reference.Ref)
		}
	}
	return value, name, fmt.Errorf("read document: the references of %s go round", name)
}

// What is read of an operation. Its parts may be references.
type (
	described struct {
		OperationID, Summary, Description string
		Deprecated                        bool
		Parameters                        []json.RawMessage
		RequestBody                       json.RawMessage
		Responses                         members[json.RawMessage]
		Security                          *[]map[string][]string
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema, Example       json.RawMessage
	}
	content struct {
		Description string
		Required    bool
		Headers     members[json.RawMessage]
		Content     members[struct {
			Schema, Example json.RawMessage
			Examples        members[json.RawMessage]
		}]
	}
	schema struct {
		Type                      json.RawMessage // a text or several
		Format, Description       string
		Enum                      []any
		Properties                members[json.RawMessage]
		Required                  []string
		Items                     json.RawMessage
		AllOf, OneOf, AnyOf       []json.RawMessage
		Minimum, Maximum, Default any
		MinLength, MaxLength      *int
		MinItems, MaxItems        *int
		Example                   json.RawMessage
		Examples                  []json.RawMessage
	}
)

// types are what a value may be, null aside.
func (s schema) types() []string {
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) == nil {
		several = []string{one}
	} else {
		_ = json.Unmarshal(s.Type, &several) // there may be none
	}
	return slices.DeleteFunc(several, func(name string) bool { return name == "null" })
}

// rules says in a few words what a value must be.
func (s schema) rules(d *document) string {
	if len(s.Enum) > 0 {
		texts := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			texts[i] = fmt.Sprint(value)
		}
		return "one of " + strings.Join(texts, ", ")
	}
	types := s.types()
	what := strings.Join(types, " or ")
	switch {
	case slices.Contains(types, "array"):
		if items, _, err := find[schema](d, s.Items); err == nil {
			kind := items.rules(d)
			if len(items.Enum) == 0 { // the limits of each are too much in a line
				kind, _, _ = strings.Cut(kind, ",")
			}
			what = "list of " + cmp.Or(kind, "anything")
		}
	case what == "" && len(s.Properties)+len(s.AllOf) > 0:
		what = "object"
	case s.Format != "" && s.Format != "int64" && s.Format != "int32":
		what = s.Format
	}
	parts := []string{}
	if what != "" {
		parts = append(parts, what)
	}
	for _, limit := range []struct {
		low, high any
		unit      string
	}{
		{s.Minimum, s.Maximum, ""},
		{optional(s.MinLength), optional(s.MaxLength), " characters"},
		{optional(s.MinItems), optional(s.MaxItems), " of them"},
	} {
		switch {
		case limit.low == 1 && limit.high == nil && limit.unit != "":
			parts = append(parts, "not empty")
		case limit.low != nil && limit.high != nil:
			parts = append(parts, fmt.Sprintf("%v to %v%s", limit.low, limit.high, limit.unit))
		case limit.low != nil:
			parts = append(parts, fmt.Sprintf("at least %v%s", limit.low, limit.unit))
		case limit.high != nil:
			parts = append(parts, fmt.Sprintf("at most %v%s", limit.high, limit.unit))
		}
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("default %v", s.Default))
	}
	return strings.Join(parts, ", ")
}

func optional(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

// field is a parameter, a header or a member, as a page shows it.
type field struct {
	Name, In, Rules string
	Required        bool
	Text            []block
}

// fields are the members of a schema, with those of inner objects as outer.inner and of lists as list[].inner. One that
// holds itself is shown once; within are the names of those that are being shown.
func (d *document) fields(text json.RawMessage, prefix string, within ...string) (all []field, err error) {
	s, name, err := find[schema](d, text)
	if err != nil || slices.Contains(within, name) {
		return nil, err
	}
	if name != "" {
		within = append(slices.Clone(within), name)
	}
	for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
		inner, err := d.fields(part, prefix, within...)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	if s.Items != nil {
		inner, err := d.fields(s.Items, prefix+"[].", within...)
		return append(all, inner...), err
	}
	for _, property := range s.Properties {
		p, _, err := find[schema](d, property.Value)
		if err != nil {
			return nil, err
		}
		name := strings.ReplaceAll(prefix+property.Name, ".[]", "[]")
		all = append(all, field{
			Name: name, Rules: p.rules(d), Text: blocks(p.Description), Required: slices.Contains(s.Required, property.Name),
		})
		inner, err := d.fields(property.Value, name+".", within...)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// example is a value that the document gives, as text with a member a line; "" where it gives none.
func (d *document) example(texts ...json.RawMessage) string {
	for _, text := range texts {
		if text != nil {
			return pretty((*[]byte)(&text))
		}
	}
	return ""
}

// exampleOf is a parameter's value as it stands in a URL; without an example its name in capitals.
func (d *document) exampleOf(p parameter, s schema) string {
	text := p.Example
	switch {
	case text == nil && s.Example != nil:
		text = s.Example
	case text == nil && len(s.Examples) > 0:
		text = s.Examples[0]
	}
	var value any
	if text == nil || json.Unmarshal(text, &value) != nil {
		return strings.ToUpper(p.Name)
	}
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
