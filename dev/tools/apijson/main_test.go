package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	converted, err := convert([]byte("b: [1, 2.5, true]\na:\n  \"200\": {x: <y>}\n"))
	require.NoError(t, err)
	require.Equal(t, `{"b":[1,2.5,true],"a":{"200":{"x":"<y>"}}}`, strings.Join(strings.Fields(string(converted)), ""),
		"in the order of the document")
	_, err = convert([]byte("a: [1"))
	require.ErrorContains(t, err, "read document")
	_, err = convert([]byte("1: x\n"))
	require.ErrorContains(t, err, "write document", "JSON has no member that is a number")
}

// A document that is changed without make generate is not what requests are checked against, nor what pages show.
func TestTheConvertedDocumentsAreTheDocuments(t *testing.T) {
	t.Parallel()
	written, err := filepath.Glob("../../../api/*.gen.json")
	require.NoError(t, err)
	require.NotEmpty(t, written)
	examples, err := filepath.Glob("../../../examples/*/openapi.gen.json")
	require.NoError(t, err)
	written = append(written, examples...)
	for _, file := range written {
		document, err := os.ReadFile(strings.TrimSuffix(file, ".gen.json") + ".yaml")
		require.NoError(t, err)
		converted, err := convert(document)
		require.NoError(t, err)
		onDisk, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(converted), string(onDisk), "make generate writes %s", file)
		var wholesale any
		require.NoError(t, yaml.Unmarshal(document, &wholesale))
		want, err := json.Marshal(wholesale)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(converted), file)
	}
}
