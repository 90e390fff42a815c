// Package schema checks events: against the JSON Schema of their type, and against the rules that no schema can say.
//
// Both sides ask the same checker: the outbox before it commits an event, the inbox before it applies one. A payload
// that has passed can be decoded into the struct of its definition and stored by PostgreSQL.
package schema

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"example.com/twinbox/engine/cloudevent"
)

// Ruled is a payload with rules of its own. A payload that is not one has to fit its schema and no more.
type Ruled interface {
	// Check returns an error for what the producer could never have written. Its text names members and rules, not values.
	// An error with a method ErrorCode() string gives the rule a code of its own, under which operators find its dead
	// letters together; without it the code is [CodeSchemaViolation].
	Check() error
	// About is the id of the aggregate, which is the event's key.
	About() string
	// HappenedAt is the time of which the payload tells.
	HappenedAt() time.Time
}

// Code names one way in which an event breaks the contract. The names are stable: dead letters are grouped by them.
type Code string

// The codes of an [Error], beside those that rules bring; see [Ruled].
const (
	CodeUnknownType     Code = "unknown_type"
	CodeInvalidJSON     Code = "invalid_json"
	CodeSchemaViolation Code = "schema_violation"
	CodeSubjectMismatch Code = "subject_mismatch" // the payload is about another aggregate than the envelope
)

// Error says how an event breaks the contract. It is permanent: the same bytes will always break it. Its text names
// places and rules, never values, which may be personal.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("check event: %s: %s", e.Code, e.Detail) }

// Permanent reports true: to try again cannot help.
func (e *Error) Permanent() bool { return true }

// ErrorCode returns the code as text, for callers that sort errors without importing this package.
func (e *Error) ErrorCode() string { return string(e.Code) }

// Checker checks events. It is safe for concurrent use.
type Checker struct {
	events  map[string]checked // by ce_type
	sources []string
}

type checked struct {
	cloudevent.Declaration
	schema *jsonschema.Schema
}

// Load compiles the schemas of the declared events. They are the files events/*.json, each under its $id, which is the
// declaration's DataSchema. It fails only when one is broken or missing.
func Load(files fs.FS, declared ...cloudevent.Declaration) (*Checker, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	if err := addSchemas(compiler, files); err != nil {
		return nil, err
	}
	c := &Checker{events: make(map[string]checked, len(declared))}
	for _, d := range declared {
		compiled, err := compiler.Compile(d.DataSchema)
		if err != nil {
			return nil, fmt.Errorf("load schema of %s: %w", d.Type, err)
		}
		c.events[d.Type] = checked{d, compiled}
		c.sources = append(c.sources, d.Source)
	}
	return c, nil
}

func addSchemas(compiler *jsonschema.Compiler, files fs.FS) error {
	names, err := fs.Glob(files, "events/*.json")
	if err != nil {
		return fmt.Errorf("list schemas: %w", err)
	}
	for _, name := range names {
		file, err := files.Open(name)
		if err != nil {
			return fmt.Errorf("load schema %s: %w", name, err)
		}
		document, err := jsonschema.UnmarshalJSON(file)
		_ = file.Close()
		if err != nil {
			return fmt.Errorf("load schema %s: %w", name, err)
		}
		members, _ := document.(map[string]any)
		id, _ := members["$id"].(string)
		if err := compiler.AddResource(id, document); err != nil {
			return fmt.Errorf("load schema %s: %w", name, err)
		}
	}
	return nil
}

// checkTime takes exactly what decoding can read. The format of JSON Schema allows a leap second and a lower-case z,
// and the time package a comma and an hour of one digit.
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

// Validate reports whether the event keeps the contract: its type is known, its payload is JSON that every store here
// can hold (no repeated members, no invalid UTF-8, no NUL in a string), fits the schema and says what its producer
// could have said (see [Ruled]), and the envelope is about the payload's user and not from another service's source.
// Members that the schema does not name are allowed, and so are a ce_dataschema and sources that no declaration knows:
// a later build of the version may have the one, an import the other. The error is always an [*Error].
//
// Writers and readers ask the same: a record that no service here could have written is refused by all of them.
func (c *Checker) Validate(e cloudevent.Event) error {
	known, ok := c.events[e.Type]
	if !ok {
		return &Error{CodeUnknownType, "no such event type"}
	}
	document, err := parse(e.Data)
	if err != nil {
		return err
	}
	if err := known.schema.Validate(document); err != nil {
		return &Error{CodeSchemaViolation, describe(err)}
	}
	payload, err := known.Payload(e)
	if err != nil {
		return &Error{CodeInvalidJSON, err.Error()}
	}
	if err := checkRules(e, payload, time.Now()); err != nil {
		return err
	}
	if e.Source != known.Source && slices.Contains(c.sources, e.Source) {
		return &Error{CodeSchemaViolation, "the source is another service's"}
	}
	return nil
}

// numbersAsText leaves numbers as they are written: nothing overflows.
var numbersAsText = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	token, err := d.ReadToken()
	*value = stdjson.Number(token.String())
	return err
}))

// nul is the one way to write a NUL in a string, or in a member's name: the escape, with its backslash not escaped.
var nul = regexp.MustCompile(`(^|[^\\])(\\\\)*\\u0000`)

// parse reads one JSON document into the form that the schema checker takes. What is wrong with it is said in words
// that never repeat the payload.
func parse(data []byte) (document any, err error) {
	err = json.Unmarshal(data, &document, numbersAsText)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return nil, &Error{CodeInvalidJSON, "a member is there twice"}
	case err != nil:
		return nil, &Error{CodeInvalidJSON, "the payload is not one JSON document in UTF-8"}
	case bytes.Contains(data, []byte(`\u0000`)) && nul.Match(data):
		return nil, &Error{CodeInvalidJSON, "a string has a NUL character"}
	}
	return document, nil
}

// maxAhead is how far a payload's time may lie ahead of both the event's own time and this process's clock. Producers
// here write one time into both; others may take it twice, and clocks differ.
const maxAhead = 24 * time.Hour

// checkRules finds what a schema cannot say.
func checkRules(e cloudevent.Event, payload any, now time.Time) error {
	ruled, ok := payload.(Ruled)
	if !ok {
		return nil
	}
	if ruled.About() != e.Key {
		return &Error{CodeSubjectMismatch, "the payload is about another aggregate than the envelope"}
	}
	if err := ruled.Check(); err != nil {
		return &Error{codeOf(err), err.Error()}
	}
	if at := ruled.HappenedAt(); at.After(e.Time.Add(maxAhead)) && at.After(now.Add(maxAhead)) {
		return &Error{CodeSchemaViolation, "the payload tells of a time to come"}
	}
	return nil
}

// codeOf is the code that a rule brings.
func codeOf(broken error) Code {
	if own, has := errors.AsType[interface {
		error
		ErrorCode() string
	}](broken); has && own.ErrorCode() != "" {
		return Code(own.ErrorCode())
	}
	return CodeSchemaViolation
}

// describe lists the places that are wrong and the rules they break. The places are members that the schema names, so
// nothing of the payload is repeated.
func describe(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "the payload does not fit"
	}
	var places []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			place := "/" + strings.Join(e.InstanceLocation, "/")
			places = append(places, place+" "+strings.Join(e.ErrorKind.KeywordPath(), "/"))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	slices.Sort(places)
	return strings.Join(places, ", ")
}
