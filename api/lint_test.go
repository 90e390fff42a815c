package api_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

func standard(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	root := ""
	for _, file := range map[string][]string{
		"openapi": {
			"openapi-3.1-dialect.yaml", "openapi-3.1-meta.yaml", "openapi-3.1-schema.yaml", "openapi-3.1-schema-base.yaml",
		},
		"asyncapi": {"asyncapi-3.0.0.json"},
	}[name] {
		data, err := os.ReadFile("testdata/standards/" + file)
		require.NoError(t, err)
		var schema object
		require.NoError(t, yaml.Unmarshal(data, &schema))
		root = schema[`$id`].(string)
		require.NoError(t, compiler.AddResource(root, schema))
	}
	compiled, err := compiler.Compile(root)
	require.NoError(t, err)
	return compiled
}

func asJSON(t *testing.T, document any) any {
	t.Helper()
	encoded, err := json.Marshal(document)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	require.NoError(t, err)
	return value
}

func TestDocumentsKeepToTheirFormats(t *testing.T) {
	t.Parallel()
	openapi, asyncapi := standard(t, "openapi"), standard(t, "asyncapi")
	for _, name := range documents(t) {
		format := openapi
		if name == "asyncapi.yaml" {
			format = asyncapi
		}
		require.NoError(t, format.Validate(asJSON(t, document(t, name))), name)
	}
	others, err := filepath.Glob("../examples/*/contract/asyncapi.yaml")
	require.NoError(t, err)
	for _, file := range others {
		require.NoError(t, asyncapi.Validate(asJSON(t, document(t, file))), file)
	}
}

// A misplaced comma of YAML makes a member of half a sentence.
func TestNothingIsDeclaredForNothing(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		root := document(t, name)
		referred := map[string]bool{}
		walk(root, func(path string, value any) {
			if reference, isText := value.(string); isText && strings.HasSuffix(path, "/$ref") {
				referred[reference] = true
			}
			if value == nil {
				require.Regexp(t, `/(example|value)(/|$)`, path, "%s: %s has no value", name, path)
			}
		})
		for kind, declared := range root["components"].(object) {
			for part := range declared.(object) {
				if kind == "securitySchemes" || kind == "messageTraits" { // other places and documents refer to them
					continue
				}
				require.True(t, referred["#/components/"+kind+"/"+part], "%s: %s %s is used nowhere", name, kind, part)
			}
		}
	}
}

func walk(value any, visit func(path string, value any)) { walkFrom("", value, visit) }

func walkFrom(path string, value any, visit func(path string, value any)) {
	visit(path, value)
	switch inner := value.(type) {
	case object:
		for name, member := range inner {
			walkFrom(path+"/"+name, member, visit)
		}
	case []any:
		for _, element := range inner {
			walkFrom(path+"/0", element, visit)
		}
	}
}

func readRequests(t *testing.T, name string) testkit.HTTPFile {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	file, err := testkit.ParseHTTPFile(string(content))
	require.NoError(t, err, name)
	return file
}

var reference = regexp.MustCompile(`\{\{([^}]+)\}\}`)

func requireBody(t *testing.T, check func(string, any) error, op operation, request testkit.HTTPFileRequest) {
	t.Helper()
	if op.body == nil {
		require.Empty(t, request.Body)
		return
	}
	require.Equal(t, "application/json", request.Header.Get("Content-Type"))
	schema := op.body["application/json"].(object)["schema"].(object)["$ref"].(string)
	var body any
	require.NoError(t, json.Unmarshal([]byte(request.Body), &body), request.Name)
	require.NoError(t, check(schema, body), request.Name)
}

func declaredCodes(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var codes []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !isCodeType(spec.Type) {
			return true
		}
		for _, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				code, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				codes = append(codes, code)
			}
		}
		return true
	})
	return codes
}

func isCodeType(expression ast.Expr) bool {
	switch named := expression.(type) {
	case *ast.Ident:
		return named.Name == "Code"
	case *ast.SelectorExpr:
		return strings.HasSuffix(named.Sel.Name, "Code")
	}
	return false
}

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

func TestReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		root := document(t, name)
		walk(root, func(path string, value any) {
			if reference, isText := value.(string); isText && strings.HasSuffix(path, "/$ref") {
				requireTarget(t, root, reference)
			}
		})
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
	require.Subset(t, names, []string{"asyncapi.yaml"})
	return names
}
