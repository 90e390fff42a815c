package admin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/web"
)

// document checks requests against api/admin.yaml, so that a null, empty or zero member never means "no condition".
type document struct {
	operations map[string]operation // by method and path
}

type operation struct {
	id    string
	query *jsonschema.Schema // of its parameters, as the members of one object
	body  *jsonschema.Schema // of application/json; nil: none
}

const documentURL = "https://example.com/admin.yaml"

var loadDocument = sync.OnceValues(func() (*document, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat() // a time that is none
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Admin))
	if err == nil {
		err = compiler.AddResource(documentURL, whole)
	}
	if err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	d := &document{operations: map[string]operation{}}
	for path, methods := range members(whole, "paths") {
		for method, described := range members(methods) {
			if method == "parameters" { // of the path
				continue
			}
			place := documentURL + "#/paths/" + url.PathEscape(strings.ReplaceAll(path, "/", "~1")) + "/" + method
			op, err := compileOperation(compiler, place, members(described), whole)
			if err != nil {
				return nil, fmt.Errorf("compile admin.yaml: %w", err)
			}
			d.operations[strings.ToUpper(method)+" "+path] = op
		}
	}
	return d, nil
})

func members(of any, names ...string) map[string]any {
	object, _ := of.(map[string]any)
	for _, name := range names {
		object, _ = object[name].(map[string]any)
	}
	return object
}

func compileOperation(
	compiler *jsonschema.Compiler, place string, described map[string]any, whole any,
) (op operation, err error) {
	properties, required := map[string]any{}, []any{}
	parameters, _ := described["parameters"].([]any)
	for _, each := range parameters {
		p := members(each)
		if ref, is := p["$ref"].(string); is {
			p = members(whole, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		if name, _ := p["name"].(string); p["in"] == "query" {
			properties[name] = p["schema"]
			if p["required"] == true {
				required = append(required, name)
			}
		}
	}
	op.id, _ = described["operationId"].(string)
	described["x-query"] = map[string]any{"type": "object", "properties": properties, "required": required}
	if op.query, err = compiler.Compile(place + "/x-query"); err != nil {
		return op, err
	}
	if members(described, "requestBody", "content", "application/json") != nil {
		op.body, err = compiler.Compile(place + "/requestBody/content/application~1json/schema")
	}
	return op, err
}

func (d *document) mount(router chi.Router, handlers map[string]handler) error {
	for place, op := range d.operations {
		method, path, _ := strings.Cut(place, " ")
		handle := handlers[op.id]
		if handle == nil {
			return fmt.Errorf("mount admin.yaml: no handler of %s", op.id)
		}
		router.MethodFunc(method, path, func(w http.ResponseWriter, r *http.Request) {
			query, err := op.readQuery(r.URL.RawQuery)
			if err != nil {
				web.WriteProblem(w, r, err)
				return
			}
			if r.URL.RawPath != "" { // the router took the parameters from it
				values := chi.RouteContext(r.Context()).URLParams.Values
				for i, escaped := range values {
					values[i], _ = url.PathUnescape(escaped) // net/http refuses malformed paths
				}
			}
			handle(call{w: w, r: r, query: query, hasBody: op.body != nil})
		})
	}
	return nil
}

func (o operation) readQuery(raw string) (given map[string]any, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalidParameter("query", "is malformed")
	}
	given = map[string]any{}
	for name, values := range query {
		schema, known := o.query.Properties[name]
		switch {
		case !known: // the name is the caller's invention, and not repeated
			return nil, invalidParameter("query", "has a parameter that this operation does not know")
		case len(values) != 1:
			return nil, invalidParameter(name, "is there more than once")
		case !utf8.ValidString(values[0]):
			return nil, invalid(name, "is not UTF-8")
		}
		given[name] = typed(schema, values[0])
	}
	switch name, broken := check(o.query, given); broken.(type) {
	case nil:
		return given, nil
	case *kind.Required:
		return nil, web.ParameterError(http.StatusBadRequest, web.CodeMissingParameter, name, "is missing")
	default:
		return nil, invalidParameter(name, rule(broken))
	}
}

func typed(schema *jsonschema.Schema, text string) any {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	if schema.Types != nil && !slices.Contains(schema.Types.ToStrings(), "string") {
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return value
		}
	}
	return text
}

func (d *document) checkBody(r *http.Request, body []byte) error {
	schema := d.operations[r.Method+" "+chi.RouteContext(r.Context()).RoutePattern()].body
	if schema == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if member, broken := check(schema, value); broken != nil {
		return invalid(member, rule(broken))
	}
	return nil
}

func check(schema *jsonschema.Schema, value any) (member string, broken jsonschema.ErrorKind) {
	wrong, is := errors.AsType[*jsonschema.ValidationError](schema.Validate(value))
	if !is {
		return "", nil
	}
	cause := firstCause(wrong)
	place := slices.Clone(cause.InstanceLocation)
	if required, is := cause.ErrorKind.(*kind.Required); is {
		place = append(place, required.Missing[0])
	}
	return strings.Join(place, "/"), cause.ErrorKind
}

// firstCause picks by place, so that the same request always gets the same answer.
func firstCause(wrong *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(wrong.Causes) == 0 {
		return wrong
	}
	causes := make([]*jsonschema.ValidationError, len(wrong.Causes))
	for i, cause := range wrong.Causes {
		causes[i] = firstCause(cause)
	}
	return slices.MinFunc(causes, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
}

func rule(broken jsonschema.ErrorKind) string {
	switch k := broken.(type) {
	case *kind.Type:
		if k.Got == "null" {
			return "is null; leave it out where it says nothing"
		}
		return "must be of the type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "is none of " + strings.Trim(fmt.Sprint(k.Want), "[]")
	case *kind.Required:
		return "is missing"
	case *kind.MinLength, *kind.MinItems:
		return "is empty or too short"
	case *kind.MaxLength, *kind.MaxItems:
		return "is too long"
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum:
		return "is out of its range"
	case *kind.Pattern:
		return "shows nothing, holds control characters or unseen ones, or is malformed"
	}
	return "is malformed"
}
