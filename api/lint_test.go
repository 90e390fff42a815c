package api_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"
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

func asJSON(t *testing.T, name string) any {
	t.Helper()
	encoded, err := json.Marshal(document(t, name))
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
		require.NoError(t, format.Validate(asJSON(t, name)), name)
	}
	others, err := filepath.Glob("../examples/*/contract/asyncapi.yaml")
	require.NoError(t, err)
	for _, file := range others {
		require.NoError(t, asyncapi.Validate(asJSON(t, file)), file)
	}

	broken := document(t, "openapi.yaml")
	broken["paths"].(object)["/v1/signups"].(object)["post"].(object)["parameter"] = []any{}
	require.Error(t, openapi.Validate(broken), "a member that the format does not know")
	broken = document(t, "openapi.yaml")
	broken["components"].(object)["schemas"].(object)["SignupRequest"].(object)["minProperties"] = "1"
	require.Error(t, openapi.Validate(broken), "a schema that is none")
	require.Error(t, asyncapi.Validate(broken))
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
				if kind == "securitySchemes" { // other places refer to them by name
					continue
				}
				require.True(t, referred["#/components/"+kind+"/"+part], "%s: %s %s is used nowhere", name, kind, part)
			}
		}
	}
}

func walk(value any, visit func(path string, value any)) {
	var at func(path string, value any)
	at = func(path string, value any) {
		visit(path, value)
		switch inner := value.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(inner)) {
				at(path+"/"+name, inner[name])
			}
		case []any:
			for _, element := range inner {
				at(path+"/0", element)
			}
		}
	}
	at("", value)
}
