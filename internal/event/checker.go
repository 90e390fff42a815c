package event

import (
	"bytes"
	"cmp"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Ruled is a payload with its own rules.
type Ruled interface {
	// Check returns an error for a payload that no producer may write. Its text has no values. A method ErrorCode()
	// string replaces the code [CodeSchemaViolation].
	Check() error
	// About returns the event's key and the payload's business time.
	About() (key string, at time.Time)
}

// The codes of an event that breaks the contract. A [Ruled] payload may have others.
const (
	CodeUnknownType     Code = "unknown_type"
	CodeInvalidJSON     Code = "invalid_json"
	CodeSchemaViolation Code = "schema_violation"
	CodeSubjectMismatch Code = "subject_mismatch"
)

// Checker checks events. It is safe for concurrent use.
type Checker struct {
	events   map[string]checked // by ce_type
	declared []Declaration
}

type checked struct {
	Declaration
	schema *jsonschema.Schema
}

// LoadSchemas compiles the files events/*.json, whose $id is an event's DataSchema. It returns all errors.
func LoadSchemas(files fs.FS, declared ...Declaration) (*Checker, error) {
	return new(Checker).With(files, declared...)
}

// With returns a checker of c's events and of these. It fails like [LoadSchemas].
func (c *Checker) With(files fs.FS, declared ...Declaration) (*Checker, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	ids, err := addSchemas(compiler, files)
	problems := []error{err}
	all := &Checker{events: map[string]checked{}, declared: slices.Concat(c.declared, declared)}
	maps.Copy(all.events, c.events)
	sources := map[string]string{}
	for _, d := range c.declared {
		sources[d.Topic] = d.Source
	}
	for _, d := range declared {
		if _, exists := all.events[d.Type]; exists {
			problems = append(problems, fmt.Errorf("two events have the type %s", d.Type))
		}
		if source := cmp.Or(sources[d.Topic], d.Source); d.Topic != "" && source != d.Source {
			problems = append(problems, fmt.Errorf("two sources write to topic %s: %s and %s", d.Topic, source, d.Source))
		}
		sources[d.Topic] = d.Source
		if err == nil && !ids[d.DataSchema] {
			problems = append(problems, fmt.Errorf("event %s has no schema: no file in events has the $id %s", d.Type,
				d.DataSchema))
			continue
		}
		compiled, invalid := compiler.Compile(d.DataSchema)
		if invalid != nil && err == nil {
			problems = append(problems, fmt.Errorf("load schema of %s: %w", d.Type, invalid))
		}
		all.events[d.Type] = checked{d, compiled}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// Declared returns the checker's events.
func (c *Checker) Declared() []Declaration { return c.declared }

func addSchemas(compiler *jsonschema.Compiler, files fs.FS) (ids map[string]bool, err error) {
	ids = map[string]bool{}
	names, _ := fs.Glob(files, "events/*.json") // its error would be the pattern's
	for _, name := range names {
		text, failed := fs.ReadFile(files, name)
		var document any
		if failed == nil {
			document, failed = jsonschema.UnmarshalJSON(bytes.NewReader(text))
		}
		if failed == nil {
			members, _ := document.(map[string]any)
			id, _ := members["$id"].(string)
			failed, ids[id] = compiler.AddResource(id, document), true
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("load schema %s: %w", name, failed))
		}
	}
	return ids, err
}

// checkTime accepts the times that decode. JSON Schema and package time allow more.
func checkTime(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	quoted, err := jsontext.AppendQuote(make([]byte, 0, 64), text)
	if err != nil {
		return err
	}
	return json.Unmarshal(quoted, new(time.Time))
}

// Validate returns a [*ContractError] for an unknown type, a payload that is not JSON (UTF-8, each member once) or does
// not fit its schema, another aggregate than the envelope's, or a broken rule of [Ruled].
func (c *Checker) Validate(e Event) error {
	known, ok := c.events[e.Type]
	if !ok {
		return &ContractError{CodeUnknownType, "no such event type"}
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Data))
	switch {
	case err != nil && isFramed(e.Data):
		return &ContractError{CodeInvalidJSON, fmt.Sprintf("the payload is framed by a schema registry (schema id %d); "+
			"send plain JSON", binary.BigEndian.Uint32(e.Data[1:]))}
	case err != nil:
		return &ContractError{CodeInvalidJSON, "the payload is not one JSON document"}
	}
	if err := known.schema.Validate(clampNumbers(document)); err != nil {
		return &ContractError{CodeSchemaViolation, describe(err)}
	}
	payload, err := known.Payload(e)
	if err != nil {
		return &ContractError{CodeInvalidJSON, err.Error()}
	}
	ruled, ok := payload.(Ruled)
	if !ok {
		return nil
	}
	if key, _ := ruled.About(); key != e.Key {
		return &ContractError{CodeSubjectMismatch, "the payload is about another aggregate than the envelope"}
	}
	if err := ruled.Check(); err != nil {
		return &ContractError{cmp.Or(Code(CodeOf(err)), CodeSchemaViolation), err.Error()}
	}
	return nil
}

var longExponent = regexp.MustCompile(`([eE][+-]?)0*[1-9][0-9]{3,}$`)

// clampNumbers shortens exponents to three digits: the schema library computes longer ones slowly, or panics.
func clampNumbers(document any) any {
	switch value := document.(type) {
	case stdjson.Number:
		return stdjson.Number(longExponent.ReplaceAllString(string(value), "${1}999"))
	case []any:
		for i, item := range value {
			value[i] = clampNumbers(item)
		}
	case map[string]any:
		for name, member := range value {
			value[name] = clampNumbers(member)
		}
	}
	return document
}

// Confluent's frame is a zero and a schema id of 4 bytes.
func isFramed(payload []byte) bool { return len(payload) > 5 && payload[0] == 0 }

// CodeOf returns the code of an error with a method ErrorCode() string, else "".
func CodeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return ""
}

// describe returns no values of the payload.
func describe(err error) string {
	invalid, is := errors.AsType[*jsonschema.ValidationError](err)
	if !is {
		return "the payload does not fit"
	}
	places := placesOf(invalid)
	slices.Sort(places)
	return strings.Join(places, ", ")
}

var brokenKeywords = map[string]string{"type": "has the wrong type", "format": "has the wrong format"}

func placesOf(e *jsonschema.ValidationError) (places []string) {
	if missing, is := e.ErrorKind.(*kind.Required); is {
		for _, name := range missing.Missing {
			places = append(places, "/"+strings.Join(append(slices.Clone(e.InstanceLocation), name), "/")+" is missing")
		}
		return places
	}
	if len(e.Causes) == 0 {
		keyword := strings.Join(e.ErrorKind.KeywordPath(), "/")
		fault := cmp.Or(brokenKeywords[keyword], "breaks "+keyword)
		return []string{"/" + strings.Join(e.InstanceLocation, "/") + " " + fault}
	}
	for _, cause := range e.Causes {
		places = append(places, placesOf(cause)...)
	}
	return places
}
