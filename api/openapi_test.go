package api_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

type object = map[string]any

func document(t *testing.T, name string) object {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var parsed object
	require.NoError(t, yaml.Unmarshal(data, &parsed))
	return parsed
}

func at(t *testing.T, root object, path ...string) any {
	t.Helper()
	var here any = root
	for _, name := range path {
		here = deref(t, root, here)
		inner, ok := here.(object)
		require.True(t, ok, "%s is not an object", name)
		here = inner[name]
	}
	return deref(t, root, here)
}

func deref(t *testing.T, root object, value any) any {
	t.Helper()
	inner, ok := value.(object)
	if !ok {
		return value
	}
	reference, ok := inner["$ref"].(string)
	if !ok {
		return value
	}
	path, local := strings.CutPrefix(reference, "#/")
	require.True(t, local, reference)
	found := at(t, root, strings.Split(path, "/")...)
	require.NotNil(t, found, "%s leads nowhere", reference)
	return found
}

type operation struct {
	name      string
	body      object // by media type
	responses object
}

var methods = []string{"get", "head", "post", "put", "patch", "delete"}

func operations(t *testing.T, root object) map[string]operation {
	t.Helper()
	found := map[string]operation{}
	for path := range at(t, root, "paths").(object) {
		for _, method := range methods {
			described, ok := at(t, root, "paths", path, method).(object)
			if !ok {
				continue
			}
			op := operation{name: strings.ToUpper(method) + " " + path, responses: described["responses"].(object)}
			if described["requestBody"] != nil {
				op.body = at(t, root, "paths", path, method, "requestBody", "content").(object)
			}
			found[op.name] = op
		}
	}
	require.NotEmpty(t, found)
	return found
}

const documentURL = "https://example.com/openapi.yaml"

// The schemas of OpenAPI 3.1 are JSON Schema 2020-12.
func checker(t *testing.T, root object) func(pointer string, value any) error {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource(documentURL, root))
	return func(pointer string, value any) error {
		schema, err := compiler.Compile(documentURL + pointer)
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	check := checker(t, root)
	for _, op := range operations(t, root) {
		contents := map[string]object{"request": op.body}
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			contents[status], _ = response["content"].(object)
		}
		for status, content := range contents {
			for media := range content {
				described := content[media].(object)
				reference, _ := described["schema"].(object)["$ref"].(string)
				examples, _ := described["examples"].(object)
				require.NotEmpty(t, examples, "%s %s has no example", op.name, status)
				for name := range examples {
					value := deref(t, root, examples[name]).(object)["value"]
					if media == "text/html" {
						require.IsType(t, "", value)
						continue
					}
					require.NoError(t, check(reference, value), "%s %s %s", op.name, status, name)
				}
			}
		}
	}
}

func TestProblemExamplesAreTheCodesOfTheirResponse(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	statuses := testkit.ProblemStatuses(t, api.OpenAPI)
	shown := map[string]bool{"not_found": true, "method_not_allowed": true} // of every route; described once
	for _, op := range operations(t, root) {
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			content, _ := response["content"].(object)
			described, isProblem := content["application/problem+json"].(object)
			if !isProblem {
				require.True(t, status < "400" || strings.HasPrefix(op.name, "HEAD"), "%s %s is no problem", op.name, status)
				continue
			}
			for name, example := range described["examples"].(object) {
				value := deref(t, root, example).(object)["value"].(object)
				require.Equal(t, name, value["code"])
				require.Equal(t, status, fmt.Sprint(value["status"]), "%s %s", op.name, name)
				require.Equal(t, status, strconv.Itoa(statuses[name]), name)
				require.Equal(t, "https://example.com/twinbox/problems/"+name, value["type"])
				shown[name] = true
			}
		}
	}
	var enum []string
	for _, code := range at(t, root, "components", "schemas", "ProblemCode", "enum").([]any) {
		enum = append(enum, code.(string))
	}
	require.ElementsMatch(t, enum, slices.Collect(maps.Keys(statuses)))
	require.ElementsMatch(t, enum, slices.Collect(maps.Keys(shown)))
}

func TestEveryOperationCanBeRefused(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	for _, op := range operations(t, root) {
		want := []string{"429", "500", "503"}
		if op.body != nil {
			want = append(want, "400", "408", "413", "415", "422")
		}
		for _, status := range want {
			require.Contains(t, op.responses, status, op.name)
		}
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			headers, _ := response["headers"].(object)
			if strings.HasPrefix(op.name, "HEAD") {
				continue
			}
			require.Equal(t, status == "429" || status == "503", headers["Retry-After"] != nil, "%s %s", op.name, status)
		}
	}
}

func TestReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		root := document(t, name)
		var walk func(any)
		walk = func(value any) {
			switch inner := value.(type) {
			case object:
				if reference, ok := inner["$ref"].(string); ok {
					requireTarget(t, root, reference)
				}
				for _, member := range inner {
					walk(member)
				}
			case []any:
				for _, element := range inner {
					walk(element)
				}
			}
		}
		walk(root)
	}
}

func requireTarget(t *testing.T, root object, reference string) {
	t.Helper()
	if file, isFile := strings.CutPrefix(reference, "./"); isFile {
		_, err := api.Files.Open(file)
		require.NoError(t, err, reference)
		return
	}
	deref(t, root, object{"$ref": reference})
}

func documents(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(api.Files, "*.yaml")
	require.NoError(t, err)
	require.Subset(t, names, []string{"asyncapi.yaml", "openapi.yaml"})
	return names
}
