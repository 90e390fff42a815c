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

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/web"
)

type operation struct {
	id   string
	body *jsonschema.Schema // nil: none
}

const documentURL = "https://example.com/admin.yaml"

// readDocument returns the operations by method and path.
var readDocument = sync.OnceValues(func() (map[string]operation, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat() // a time that is none
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Admin))
	if err == nil {
		err = compiler.AddResource(documentURL, document)
	}
	if err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	operations := map[string]operation{}
	for path, methods := range members(document, "paths") {
		for method, described := range members(methods) {
			op := operation{}
			op.id, _ = members(described)["operationId"].(string)
			if members(described, "requestBody") != nil {
				op.body, err = compiler.Compile(documentURL + "#/paths/" + url.PathEscape(strings.ReplaceAll(path, "/", "~1")) +
					"/" + method + "/requestBody/content/application~1json/schema")
			}
			if err != nil {
				return nil, fmt.Errorf("compile admin.yaml: %w", err)
			}
			operations[strings.ToUpper(method)+" "+path] = op
		}
	}
	return operations, nil
})

func members(of any, names ...string) map[string]any {
	object, _ := of.(map[string]any)
	for _, name := range names {
		object, _ = object[name].(map[string]any)
	}
	return object
}

func mount(router chi.Router, operations map[string]operation, handlers map[string]http.HandlerFunc) error {
	for place, op := range operations {
		method, path, _ := strings.Cut(place, " ")
		handle := handlers[op.id]
		if handle == nil {
			return fmt.Errorf("mount admin.yaml: no handler of %s", op.id)
		}
		router.MethodFunc(method, path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				web.WriteProblem(w, r, errQuery)
				return
			}
			handle(w, r)
		})
	}
	return nil
}

// checkBody keeps a null, empty or zero member from meaning "no condition".
func checkBody(operations map[string]operation) func(r *http.Request, body []byte) error {
	return func(r *http.Request, body []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		op := operations[r.Method+" "+r.URL.Path]
		wrong, is := errors.AsType[*jsonschema.ValidationError](op.body.Validate(value))
		if !is {
			return nil
		}
		cause := firstCause(wrong)
		place := cause.InstanceLocation
		if required, is := cause.ErrorKind.(*kind.Required); is {
			place = append(slices.Clone(place), required.Missing[0])
		}
		return invalid(strings.Join(place, "/"), rule(cause.ErrorKind))
	}
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
