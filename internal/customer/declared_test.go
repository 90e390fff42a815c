package customer

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/dev/yamltest"
)

// described is what api/openapi.yaml says of the answers to one path: by method and status.
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

var descriptions = sync.OnceValues(func() (all []described, err error) {
	data, err := contracts.Files.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	var document struct {
		Paths      map[string]map[string]yamltest.Node `yaml:"paths"`
		Components struct {
			Responses map[string]response `yaml:"responses"`
			Headers   map[string]header   `yaml:"headers"`
		} `yaml:"components"`
	}
	if err := yamltest.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	schemas, err := schemaCompiler(data)
	if err != nil {
		return nil, err
	}
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
				if name, shared := strings.CutPrefix(r.Ref, "#/components/responses/"); shared {
					r = document.Components.Responses[name]
				}
				for field, h := range r.Headers {
					if name, shared := strings.CutPrefix(h.Ref, "#/components/headers/"); shared {
						r.Headers[field] = document.Components.Headers[name]
					}
				}
				for _, m := range r.Content {
					if m.Schema.Ref == "" {
						continue
					}
					if m.check, err = schemas.Compile(documentURL + m.Schema.Ref); err != nil {
						return nil, err
					}
				}
				operation.Responses[status] = r
			}
			d.answers[strings.ToUpper(method)] = operation.Responses
		}
		all = append(all, d)
	}
	return all, nil
})

const documentURL = "https://example.com/openapi.yaml"

// schemaCompiler compiles schemas where they stand in the document: those of OpenAPI 3.1 are JSON Schema 2020-12.
func schemaCompiler(document []byte) (*jsonschema.Compiler, error) {
	var root map[string]any
	if err := yamltest.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	return compiler, compiler.AddResource(documentURL, root)
}

// requireDeclared compares an answer that a test has got with what the document says of it: its status, the headers
// that it must have, its media type, and its body. So every request of every test asks whether the document is true.
func requireDeclared(t *testing.T, request *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	all, err := descriptions()
	require.NoError(t, err)
	for _, d := range all {
		answers, known := d.answers[request.Method]
		if !known || !d.path.MatchString(request.URL.Path) {
			continue
		}
		said, declared := answers[strconv.Itoa(answer.StatusCode)]
		what := request.Method + " " + request.URL.Path + " " + answer.Status
		require.True(t, declared, "%s is not in openapi.yaml", what)
		for name, h := range said.Headers {
			require.True(t, !h.Required || answer.Header.Get(name) != "", "%s has no %s", what, name)
		}
		form, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
		if form == "text/html" && said.Content["application/problem+json"] != nil {
			continue // a browser gets a problem as a page, which is said once, of all of them
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
