package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// make generate writes the JSON.
func TestTheConvertedDocumentsAreTheDocuments(t *testing.T) {
	t.Parallel()
	var documents []string
	for _, glob := range []string{
		"api/admin.yaml", "api/openapi.yaml", "examples/*/openapi.yaml", "internal/*/openapi.yaml",
	} {
		found, err := filepath.Glob("../../../" + glob)
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	for _, name := range documents {
		document, err := os.ReadFile(name)
		require.NoError(t, err)
		converted, err := convert(document)
		require.NoError(t, err)
		file := strings.TrimSuffix(name, ".yaml") + ".gen.json"
		onDisk, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(converted), string(onDisk), "make generate writes %s", file)
	}
}
