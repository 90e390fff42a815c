package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/dev/yamltest"
)

var calls = regexp.MustCompile(
	`(?s)client\.(Get|Post|PostLines)\(\s*(?:fmt\.Sprintf\()?\s*"([^"]+)"|what, "(/admin[^"]+)"`)

// The requests name their operations by method and path. Each is one of the document's, and each of the document's has
// a command.
func TestTheCommandsCallTheOperationsOfTheDocument(t *testing.T) {
	t.Parallel()
	data, err := api.Files.ReadFile("admin.yaml")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	require.NoError(t, yamltest.Unmarshal(data, &document))
	var described, called []string
	for path, operations := range document.Paths {
		for method := range operations {
			if method == "get" || method == "post" {
				described = append(described, method+" "+strings.ReplaceAll(path, "{id}", "%d"))
			}
		}
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range calls.FindAllStringSubmatch(string(source), -1) {
			method := "post"
			if call[1] == "Get" {
				method = "get"
			}
			if operation := method + " " + call[2] + call[3]; !seen[operation] {
				seen[operation] = true
				called = append(called, operation)
			}
		}
	}
	require.ElementsMatch(t, described, called)
}
