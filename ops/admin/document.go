package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"example.com/twinbox/api"
	"example.com/twinbox/frame/web"
)

// document is api/admin.yaml, converted to JSON, as a check of requests. What it says of a member or of a parameter
// holds for every operation, without a line of Go: one that is null, empty or zero never comes to mean "no condition".
type document struct {
	text       []byte
	operations map[string]operation // by method and path
}

// operation is what the document says of one method of one path.
type operation struct {
	body       *jsonschema.Schema // of application/json; nil: none
	parameters map[string]*jsonschema.Schema
}

// parameter and described are what is read of the document beside its schemas.
type (
	parameter struct {
		Ref  string `json:"$ref"`
		Name string `json:"name"`
		In   string `json:"in"`
	}
	described struct {
		Parameters  []parameter `json:"parameters"`
		RequestBody struct {
			Content map[string]any `json:"content"`
		} `json:"requestBody"`
	}
)

const documentURL = "https://example.com/admin.yaml"

// loadDocument reads the document that the binary carries.
func loadDocument() (*document, error) {
	data, err := api.Files.ReadFile("admin.gen.json")
	if err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	var parts struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components struct {
			Parameters map[string]parameter `json:"parameters"`
		} `json:"components"`
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err := errors.Join(err, json.Unmarshal(data, &parts)); err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(documentURL, whole); err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	d := &document{text: data, operations: map[string]operation{}}
	for path, methods := range parts.Paths {
		for method, node := range methods {
			if method == "parameters" { // of the path
				continue
			}
			var op described
			if err := json.Unmarshal(node, &op); err != nil {
				return nil, fmt.Errorf("read admin.yaml: %s %s: %w", method, path, err)
			}
			compiled, err := compileOperation(compiler, []string{"paths", path, method}, op, parts.Components.Parameters)
			if err != nil {
				return nil, err
			}
			d.operations[strings.ToUpper(method)+" "+path] = compiled
		}
	}
	return d, nil
}

func compileOperation(
	compiler *jsonschema.Compiler, at []string, described described, shared map[string]parameter,
) (operation, error) {
	op := operation{parameters: map[string]*jsonschema.Schema{}}
	for i, p := range described.Parameters {
		place := append(slices.Clone(at), "parameters", strconv.Itoa(i), "schema")
		if name, isShared := strings.CutPrefix(p.Ref, "#/components/parameters/"); isShared {
			p, place = shared[name], []string{"components", "parameters", name, "schema"}
		}
		schema, err := compile(compiler, place)
		if err != nil {
			return op, err
		}
		if p.In == "query" {
			op.parameters[p.Name] = schema
		}
	}
	if described.RequestBody.Content["application/json"] == nil {
		return op, nil
	}
	var err error
	op.body, err = compile(compiler, append(slices.Clone(at), "requestBody", "content", "application/json", "schema"))
	return op, err
}

// compile compiles the schema that stands at a place of the document.
func compile(compiler *jsonschema.Compiler, place []string) (*jsonschema.Schema, error) {
	var pointer strings.Builder
	for _, member := range place {
		pointer.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(member)))
	}
	schema, err := compiler.Compile(documentURL + "#" + pointer.String())
	if err != nil {
		return nil, fmt.Errorf("compile admin.yaml: %w", err)
	}
	return schema, nil
}

// of is the operation that a routed request asks for.
func (d *document) of(r *http.Request) operation {
	return d.operations[r.Method+" "+chi.RouteContext(r.Context()).RoutePattern()]
}

// parameters refuses a query that says something else than the document allows.
func (d *document) parameters(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.of(r).checkQuery(r.URL.RawQuery); err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o operation) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return invalidParameter("query", "is malformed")
	}
	for name, values := range query {
		schema, known := o.parameters[name]
		switch {
		case !known: // the name is the caller's invention, and not repeated
			return invalidParameter("query", "has a parameter that this operation does not know")
		case len(values) != 1:
			return invalidParameter(name, "is there more than once")
		}
		err := schema.Validate(typed(schema, values[0]))
		if wrong, is := errors.AsType[*jsonschema.ValidationError](err); is {
			return invalidParameter(name, rule(firstCause(wrong)))
		}
	}
	return nil
}

// typed is the text of a parameter as the JSON value that its schema is about. What is no such value stays a text.
func typed(schema *jsonschema.Schema, text string) any {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	if schema.Types == nil {
		return text
	}
	switch types := schema.Types.ToStrings(); {
	case slices.Contains(types, "integer"):
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(text)
		}
	case slices.Contains(types, "boolean"):
		if value, err := strconv.ParseBool(text); err == nil {
			return value
		}
	}
	return text
}

// checkBody is [web.Config.CheckBody].
func (d *document) checkBody(r *http.Request, body []byte) error {
	schema := d.of(r).body
	if schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	wrong, is := errors.AsType[*jsonschema.ValidationError](schema.Validate(value))
	if !is {
		return nil
	}
	cause := firstCause(wrong)
	place := slices.Clone(cause.InstanceLocation)
	if required, is := cause.ErrorKind.(*kind.Required); is {
		place = append(place, required.Missing[0])
	}
	return invalid(strings.Join(place, "/"), rule(cause))
}

// firstCause is the one that stands first among the places, so that the same request always gets the same answer.
func firstCause(wrong *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(wrong.Causes) == 0 {
		return wrong
	}
	first := firstCause(wrong.Causes[0])
	for _, cause := range wrong.Causes[1:] {
		if c := firstCause(cause); slices.Compare(c.InstanceLocation, first.InstanceLocation) < 0 {
			first = c
		}
	}
	return first
}

// rule says which rule is broken, without the value.
func rule(cause *jsonschema.ValidationError) string {
	switch k := cause.ErrorKind.(type) {
	case *kind.Type:
		if k.Got == "null" {
			return "is null; leave it out where it says nothing"
		}
		return "must be of the type " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "is missing"
	case *kind.MinLength, *kind.MinItems:
		return "is empty or too short"
	case *kind.MaxLength, *kind.MaxItems:
		return "is too long"
	case *kind.UniqueItems:
		return "holds the same one twice"
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum, *kind.ExclusiveMaximum:
		return "is out of its range"
	case *kind.Enum:
		return fmt.Sprint("is none of ", listed(k.Want))
	case *kind.Pattern:
		return "says nothing, or is malformed"
	}
	return "does not fit api/admin.yaml"
}

func listed(words []any) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
	}
	return strings.Join(texts, ", ")
}
