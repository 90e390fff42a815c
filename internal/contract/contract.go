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
)

// Contract checks events against their schemas. It is safe for concurrent use.
type Contract struct {
	schemas map[string]*jsonschema.Schema // by ce_type
}

// Load compiles the schemas that the binary carries. It fails only when a schema is broken.
func Load() (*Contract, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	c := &Contract{schemas: make(map[string]*jsonschema.Schema, len(All()))}
	for _, d := range All() {
		schema, err := compile(compiler, d)
		if err != nil {
			return nil, fmt.Errorf("load schema %s: %w", d.File, err)
		}
		c.schemas[d.Type] = schema
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
// can hold (no repeated members, no invalid UTF-8, no NUL in a string) and fits the schema, and the payload is about
// the envelope's subject. Members that the schema does not name are allowed. The error is always an [*Error].
func (c *Contract) Validate(e cloudevent.Event) error {
	schema, known := c.schemas[e.Type]
	if !known {
		return &Error{CodeUnknownType, "no such event type"}
	}
	document, err := parse(e.Data)
	if err != nil {
		return err
	}
	if err := schema.Validate(document); err != nil {
		return &Error{CodeSchemaViolation, describe(err)}
	}
	if subject, _ := document.(map[string]any)["user_id"].(string); subject != e.Subject {
		return &Error{CodeSubjectMismatch, "user_id is not the subject"}
	}
	return nil
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
