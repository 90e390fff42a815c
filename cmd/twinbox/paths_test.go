package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
)

var calls = regexp.MustCompile(
	`(?s)\b(Get|Post)\(\s*(?:fmt\.Sprintf\()?\s*"(/admin[^"]+)"|(post|GET|POST)(?::"| )(/admin[^"]+)"`)

func TestTheCommandsCallTheOperationsOfTheDocument(t *testing.T) {
	t.Parallel()
	data, err := api.Files.ReadFile("admin.yaml")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(data, &document))
	var described, called []string
	for path, operations := range document.Paths {
		for method := range operations {
			if method == "get" || method == "post" {
				described = append(described, method+" "+path)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	shared, err := filepath.Glob("../../internal/ops/admin/client/*.go")
	require.NoError(t, err)
	seen := map[string]bool{}
	isTest := func(file string) bool { return strings.HasSuffix(file, "_test.go") }
	for _, file := range slices.DeleteFunc(slices.Concat(files, shared), isTest) {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range calls.FindAllStringSubmatch(string(source), -1) {
			method := strings.ToLower(call[1] + call[3])
			path := strings.ReplaceAll(call[2]+call[4], "%d", "{id}")
			if strings.HasSuffix(path, "/") {
				path += "{id}" // it is put together
			}
			if operation := method + " " + path; !seen[operation] {
				seen[operation] = true
				called = append(called, operation)
			}
		}
	}
	require.ElementsMatch(t, described, called)
}
