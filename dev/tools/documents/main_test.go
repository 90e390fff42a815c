package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDocumentIsFresh(t *testing.T) {
	t.Parallel()
	want, err := asyncAPI(t.Context())
	require.NoError(t, err)
	got, err := os.ReadFile("../../../api/asyncapi.yaml")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run make generate")
}
