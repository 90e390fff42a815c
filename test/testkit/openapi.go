package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

type OpenAPI struct {
	Statuses map[string]int // of each problem code

	routes  *http.ServeMux
	answers map[string]map[string]response // by route, such as "GET /v1/customers/{id}", and by status
}

type response struct {
	Ref     string            `yaml:"$ref"`
	Headers map[string]header `yaml:"headers"`
	Content map[string]*media `yaml:"content"`
}

type header struct {
	Ref      string `yaml:"$ref"`
	Required bool   `yaml:"required"`
}

type media struct {
	Schema struct {
		Ref string `yaml:"$ref"`
	} `yaml:"schema"`
	Examples map[string]any     `yaml:"examples"` // of problems, by code
	check    *jsonschema.Schema // of Schema; nil for a page
}

type apiDocument struct {
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components struct {
		Responses map[string]response `yaml:"responses"`
		Headers   map[string]header   `yaml:"headers"`
		Schemas   struct {
			ProblemCode struct {
				Statuses map[string]int `yaml:"x-problem-status"`
			} `yaml:"ProblemCode"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

const documentURL = "https://example.com/openapi.yaml"

// ParseOpenAPI compiles the schemas in place: those of OpenAPI 3.1 are JSON Schema 2020-12.
func ParseOpenAPI(data []byte) (*OpenAPI, error) {
	var document apiDocument
	var root any
	if err := errors.Join(yaml.Unmarshal(data, &document), yaml.Unmarshal(data, &root)); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	schemas := jsonschema.NewCompiler()
	schemas.AssertFormat()
	if err := schemas.AddResource(documentURL, root); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	parsed := &OpenAPI{
		Statuses: document.Components.Schemas.ProblemCode.Statuses, routes: http.NewServeMux(),
		answers: map[string]map[string]response{},
	}
	for at, item := range document.Paths {
		delete(item, "parameters")
		for method, node := range item {
			answers, err := document.readAnswers(node, schemas)
			if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, at, err)
			}
			route := strings.ToUpper(method) + " " + at
			parsed.routes.Handle(route, http.NotFoundHandler())
			parsed.answers[route] = answers
		}
	}
	return parsed, nil
}

func (d *apiDocument) readAnswers(node yaml.Node, schemas *jsonschema.Compiler) (map[string]response, error) {
	var operation struct {
		Responses map[string]response `yaml:"responses"`
	}
	if err := node.Decode(&operation); err != nil {
		return nil, err
	}
	for status, r := range operation.Responses {
		if r.Ref != "" {
			r = d.Components.Responses[path.Base(r.Ref)]
		}
		for name, h := range r.Headers {
			if h.Ref != "" {
				r.Headers[name] = d.Components.Headers[path.Base(h.Ref)]
			}
		}
		for _, m := range r.Content {
			if m.Schema.Ref == "" {
				continue
			}
			var err error
			if m.check, err = schemas.Compile(documentURL + m.Schema.Ref); err != nil {
				return nil, err
			}
		}
		operation.Responses[status] = r
	}
	return operation.Responses, nil
}

// ProblemStatuses returns the statuses of problem codes in x-problem-status.
func ProblemStatuses(t testing.TB, document []byte) map[string]int {
	t.Helper()
	parsed, err := ParseOpenAPI(document)
	require.NoError(t, err)
	require.NotEmpty(t, parsed.Statuses, "the document has no x-problem-status")
	return parsed.Statuses
}

// Responses lists the operations with each status, as in "POST /v1/signups 201", once per media type.
func (d *OpenAPI) Responses() (names []string) {
	for route, answers := range d.answers {
		for status, declared := range answers {
			if len(declared.Content) < 2 {
				names = append(names, route+" "+status)
				continue
			}
			for form := range declared.Content {
				names = append(names, route+" "+status+" "+form)
			}
		}
	}
	return names
}

// RequireDeclared compares an answer's status, required headers, media type and body with the document. It ignores
// requests that the document lacks.
func (d *OpenAPI) RequireDeclared(t testing.TB, request *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	_, route := d.routes.Handler(request)
	answers, known := d.answers[route]
	if !known {
		return
	}
	declared, known := answers[strconv.Itoa(answer.StatusCode)]
	what := request.Method + " " + request.URL.Path + " " + answer.Status
	require.True(t, known, "%s is not in the document", what)
	for name, h := range declared.Headers {
		require.True(t, !h.Required || answer.Header.Get(name) != "", "%s has no %s", what, name)
	}
	form, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if form == "text/html" && declared.Content["application/problem+json"] != nil {
		return // a browser gets a page; the document describes that once
	}
	if len(declared.Content) == 0 || request.Method == http.MethodHead {
		require.Empty(t, body, what)
		return
	}
	require.Contains(t, declared.Content, form, what)
	content := declared.Content[form]
	if content.check == nil {
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err, what)
	require.NoError(t, content.check.Validate(value), what)
	if form == "application/problem+json" {
		require.Contains(t, content.Examples, value.(map[string]any)["code"], what)
	}
}
