package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	converted, err := convert([]byte("b: [1, 2.5, true]\na:\n  \"200\": {x: <y>}\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{"a": {"200": {"x": "<y>"}}, "b": [1, 2.5, true]}`, string(converted))
	_, err = convert([]byte("a: [1"))
	require.ErrorContains(t, err, "read document")
	_, err = convert([]byte("1: x\n"))
	require.ErrorContains(t, err, "write document", "JSON has no member that is a number")
}

// A document that is changed without make generate is not what requests are checked against.
func TestTheConvertedDocumentIsTheDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../api/admin.yaml")
	require.NoError(t, err)
	converted, err := convert(document)
	require.NoError(t, err)
	onDisk, err := os.ReadFile("../../../api/admin.gen.json")
	require.NoError(t, err)
	require.Equal(t, string(converted), string(onDisk), "make generate writes it")
}
