package testkit

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"
)

// OpenAPI is what an OpenAPI document says of answers.
type OpenAPI struct {
	Statuses map[string]int // of each problem code
	paths    []described
}

// described is one path: its answers by method and status.
type described struct {
	template string
	path     *regexp.Regexp
	answers  map[string]map[string]response
}

type response struct {
	Ref     string            `yaml:"$ref"`
	Headers map[string]header `yaml:"headers"`
	Content map[string]*media `yaml:"content"`
}

type media struct {
	Schema struct {
		Ref string `yaml:"$ref"`
	} `yaml:"schema"`
	Examples map[string]any     `yaml:"examples"` // of problems: one for each code
	check    *jsonschema.Schema // of what Ref names; nil for a page
}

type header struct {
	Ref      string `yaml:"$ref"`
	Required bool   `yaml:"required"`
}

type components struct {
	Responses map[string]response `yaml:"responses"`
	Headers   map[string]header   `yaml:"headers"`
	Schemas   struct {
		ProblemCode struct {
			Statuses map[string]int `yaml:"x-problem-status"`
		} `yaml:"ProblemCode"`
	} `yaml:"schemas"`
}

// ParseOpenAPI reads a document.
func ParseOpenAPI(data []byte) (*OpenAPI, error) {
	var document struct {
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components components                      `yaml:"components"`
	}
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	schemas, err := schemaCompiler(data)
	if err != nil {
		return nil, err
	}
	parsed := &OpenAPI{Statuses: document.Components.Schemas.ProblemCode.Statuses}
	for path, methods := range document.Paths {
		pattern := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, `[^/]+`)
		d := described{path, regexp.MustCompile("^" + pattern + "$"), map[string]map[string]response{}}
		for method, node := range methods {
			if method == "parameters" {
				continue
			}
			var operation struct {
				Responses map[string]response `yaml:"responses"`
			}
			if err := node.Decode(&operation); err != nil {
				return nil, err
			}
			for status, r := range operation.Responses {
				if operation.Responses[status], err = document.Components.resolve(r, schemas); err != nil {
					return nil, err
				}
			}
			d.answers[strings.ToUpper(method)] = operation.Responses
		}
		parsed.paths = append(parsed.paths, d)
	}
	return parsed, nil
}

// resolve follows the references of a response, and compiles its schemas.
func (c components) resolve(r response, schemas *jsonschema.Compiler) (response, error) {
	if name, shared := strings.CutPrefix(r.Ref, "#/components/responses/"); shared {
		r = c.Responses[name]
	}
	for field, h := range r.Headers {
		if name, shared := strings.CutPrefix(h.Ref, "#/components/headers/"); shared {
			r.Headers[field] = c.Headers[name]
		}
	}
	for _, m := range r.Content {
		if m.Schema.Ref == "" {
			continue
		}
		check, err := schemas.Compile(documentURL + m.Schema.Ref)
		if err != nil {
			return r, err
		}
		m.check = check
	}
	return r, nil
}

const documentURL = "https://example.com/openapi.yaml"

// schemaCompiler compiles schemas where they stand in the document: those of OpenAPI 3.1 are JSON Schema 2020-12.
func schemaCompiler(document []byte) (*jsonschema.Compiler, error) {
	var root map[string]any
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	return compiler, compiler.AddResource(documentURL, root)
}

// ProblemStatuses returns the status that an OpenAPI document gives each problem code in x-problem-status.
func ProblemStatuses(t testing.TB, document []byte) map[string]int {
	t.Helper()
	parsed, err := ParseOpenAPI(document)
	require.NoError(t, err)
	require.NotEmpty(t, parsed.Statuses, "the document has no x-problem-status")
	return parsed.Statuses
}

// Responses are the operations with each of their statuses, as in "POST /v1/signups 201". A status with several forms
// is there once per form.
func (d *OpenAPI) Responses() (names []string) {
	for _, p := range d.paths {
		for method, answers := range p.answers {
			for status, said := range answers {
				name := method + " " + p.template + " " + status
				if len(said.Content) < 2 {
					names = append(names, name)
					continue
				}
				for form := range said.Content {
					names = append(names, name+" "+form)
				}
			}
		}
	}
	return names
}

// RequireDeclared compares an answer that a test has got with what the document says of it: its status, the headers
// that it must have, its media type, and its body. So every request of every test asks whether the document is true.
func (d *OpenAPI) RequireDeclared(t testing.TB, request *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	for _, p := range d.paths {
		answers, known := p.answers[request.Method]
		if !known || !p.path.MatchString(request.URL.Path) {
			continue
		}
		said, declared := answers[strconv.Itoa(answer.StatusCode)]
		what := request.Method + " " + request.URL.Path + " " + answer.Status
		require.True(t, declared, "%s is not in the document", what)
		for name, h := range said.Headers {
			require.True(t, !h.Required || answer.Header.Get(name) != "", "%s has no %s", what, name)
		}
		form, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
		if form == "text/html" && said.Content["application/problem+json"] != nil {
			continue // a browser gets a problem as a page, which the document says once for all
		}
		if len(said.Content) == 0 || request.Method == http.MethodHead {
			require.Empty(t, body, what)
			continue
		}
		require.Contains(t, said.Content, form, what)
		if check := said.Content[form].check; check != nil {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			require.NoError(t, err, what)
			require.NoError(t, check.Validate(value), what)
			if form == "application/problem+json" {
				require.Contains(t, said.Content[form].Examples, value.(map[string]any)["code"], what)
			}
		}
	}
}
