package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/domain"
)

// Contract checks events against their schemas and the rules of the domain. It is safe for concurrent use.
type Contract struct {
	events map[string]checked // by ce_type
}

type checked struct {
	Definition
	schema *jsonschema.Schema
}

// Load compiles the schemas that the binary carries. It fails only when a schema is broken.
func Load() (*Contract, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	c := &Contract{events: make(map[string]checked, len(All()))}
	for _, d := range All() {
		schema, err := compile(compiler, d)
		if err != nil {
			return nil, fmt.Errorf("load schema %s: %w", d.File, err)
		}
		c.events[d.Type] = checked{d, schema}
	}
	return c, nil
}

func compile(compiler *jsonschema.Compiler, d Definition) (*jsonschema.Schema, error) {
	file, err := api.Files.Open(d.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, err
	}
	if err := compiler.AddResource(d.SchemaURI, document); err != nil {
		return nil, err
	}
	return compiler.Compile(d.SchemaURI)
}

// checkTime takes exactly what [Decode] can read. The format of JSON Schema allows a leap second and a lower-case z,
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
// can hold (no repeated members, no invalid UTF-8, no NUL in a string), fits the schema and says what the domain could
// have said, and the envelope is about the payload's user and not from another service's source. Members that the
// schema does not name are allowed, and so are a ce_dataschema and sources that the contract does not know: a later
// build of the version may have the one, an import the other. The error is always an [*Error].
//
// Writers and readers ask the same: a record that no service here could have written is refused by all of them.
func (c *Contract) Validate(e cloudevent.Event) error {
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
	if subject, _ := document.(map[string]any)["user_id"].(string); subject != e.Key {
		return &Error{CodeSubjectMismatch, "user_id is not the subject"}
	}
	event, err := decoders[e.Type](e)
	if err != nil {
		return err
	}
	return known.checkRules(e, event, time.Now())
}

// maxAhead is how far a payload's time may lie ahead of both the event's own time and this process's clock. Producers
// here write one time into both; others may take it twice, and clocks differ.
const maxAhead = 24 * time.Hour

// checkRules finds what a schema cannot say.
func (d Definition) checkRules(e cloudevent.Event, event domain.Event, now time.Time) error {
	if err := event.Check(); err != nil {
		detail := "the payload breaks a rule of the domain"
		if broken, ok := errors.AsType[*domain.Error](err); ok {
			detail = "/" + broken.Field + " " + broken.Message
		}
		return &Error{CodeSchemaViolation, detail}
	}
	if at := event.HappenedAt(); at.After(e.Time.Add(maxAhead)) && at.After(now.Add(maxAhead)) {
		return &Error{CodeSchemaViolation, "the payload tells of a time to come"}
	}
	if e.Source != d.Source && isSource(e.Source) {
		return &Error{CodeSchemaViolation, "the source is another service's"}
	}
	return nil
}

// isSource reports whether a producer of this contract goes by that name. Other sources are let through: an import may
// write what a service would have written, and says so.
func isSource(source string) bool {
	return slices.ContainsFunc(All(), func(d Definition) bool { return d.Source == source })
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
