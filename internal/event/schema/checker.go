// Package schema checks events: against the JSON Schema of their type, and against the rules that no schema can say.
//
// Both sides ask the same checker: the outbox before it commits an event, the inbox before it applies one. A payload
// that has passed can be decoded into the struct of its definition and stored by PostgreSQL.
package schema

import (
	"bytes"
	"encoding/binary"
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

	"example.com/twinbox/internal/event/cloudevent"
)

// Ruled is a payload with rules of its own. A payload that is not one has to fit its schema and no more.
type Ruled interface {
	// Check returns an error for what the producer could never have written. Its text names members and rules, not values.
	// An error with a method ErrorCode() string gives the rule a code of its own, under which operators find its dead
	// letters together; without it the code is [CodeSchemaViolation].
	Check() error
	// About is the id of the aggregate, which is the event's key, and the time of which the payload tells.
	About() (key string, at time.Time)
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
	names, _ := fs.Glob(files, "events/*.json") // its error would be the pattern's
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("load schema: %w", err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			members, _ := document.(map[string]any)
			id, _ := members["$id"].(string)
			err = compiler.AddResource(id, document)
		}
		if err != nil {
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
	var document any
	err := json.Unmarshal(e.Data, &document, numbersAsText)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{CodeInvalidJSON, "a member is there twice"}
	case err != nil && isFramed(e.Data):
		return &Error{CodeInvalidJSON, fmt.Sprintf("the payload is framed by a schema registry (schema id %d); "+
			"send plain JSON", binary.BigEndian.Uint32(e.Data[1:]))}
	case err != nil:
		return &Error{CodeInvalidJSON, "the payload is not one JSON document in UTF-8"}
	case bytes.Contains(e.Data, []byte(`\u0000`)) && nul.Match(e.Data):
		return &Error{CodeInvalidJSON, "a string has a NUL character"}
	}
	if err := known.schema.Validate(document); err != nil {
		return &Error{CodeSchemaViolation, describe(err)}
	}
	payload, err := known.Payload(e)
	if err != nil {
		return &Error{CodeInvalidJSON, err.Error()}
	}
	if ruled, ok := payload.(Ruled); ok {
		key, at := ruled.About()
		if key != e.Key {
			return &Error{CodeSubjectMismatch, "the payload is about another aggregate than the envelope"}
		}
		if err := ruled.Check(); err != nil {
			return &Error{codeOf(err), err.Error()}
		}
		if at.After(e.Time.Add(maxAhead)) && at.After(time.Now().Add(maxAhead)) {
			return &Error{CodeSchemaViolation, "the payload tells of a time to come"}
		}
	}
	if e.Source != known.Source && slices.Contains(c.sources, e.Source) {
		return &Error{CodeSchemaViolation, "the source is another service's"}
	}
	return nil
}

// isFramed reports whether the payload begins as Confluent's serializers write it: a zero and a schema id of 4 bytes.
func isFramed(payload []byte) bool { return len(payload) > 5 && payload[0] == 0 }

// maxAhead is how far a payload's time may lie ahead of both the event's own time and this process's clock. Producers
// here write one time into both; others may take it twice, and clocks differ.
const maxAhead = 24 * time.Hour

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
	invalid, is := errors.AsType[*jsonschema.ValidationError](err)
	if !is {
		return "the payload does not fit"
	}
	places := placesOf(invalid)
	slices.Sort(places)
	return strings.Join(places, ", ")
}

func placesOf(e *jsonschema.ValidationError) (places []string) {
	if len(e.Causes) == 0 {
		return []string{"/" + strings.Join(e.InstanceLocation, "/") + " " + strings.Join(e.ErrorKind.KeywordPath(), "/")}
	}
	for _, cause := range e.Causes {
		places = append(places, placesOf(cause)...)
	}
	return places
}
