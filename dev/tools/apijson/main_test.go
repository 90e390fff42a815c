package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	converted, err := convert([]byte("b: [1, 2.5, true]\na:\n  \"200\": {x: <y>}\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":{"200":{"x":"<y>"}},"b":[1,2.5,true]}`, string(converted))
	_, err = convert([]byte("a: [1"))
	require.ErrorContains(t, err, "read document")
	_, err = convert([]byte("1: x\n"))
	require.Error(t, err, "JSON has no member that is a number")
}

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
