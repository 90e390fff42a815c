package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

func TestAFirstRecordIsWrittenOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "first.json")
	require.NoError(t, keepFirst(file, contract.UserRenamed.Declaration))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(first), `"ce_type": "`+contract.UserRenamed.Type+`"`)
	require.NoError(t, keepFirst(file, contract.UserRenamed.Declaration))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again), "its id would be another one")
}

func TestExamplesThatAreMissingOrWrongAreNamedTogether(t *testing.T) {
	t.Parallel()
	lacking, wrong := contract.UserRenamed.Declaration, contract.EmailVerified.Declaration
	lacking.Type, lacking.DataSchema = "shop.ordered.v1", "https://example.com/ordered.v1.json"
	wrong.DataSchema = contract.UserRenamed.DataSchema
	checker, err := contract.Load()
	require.NoError(t, err)
	const missing = "event shop.ordered.v1 has no example: no file api/events/examples/ordered.v1.json"
	require.EqualError(t, checkExamples(nil, lacking), missing)
	err = checkExamples(checker, lacking, contract.UserRenamed.Declaration, wrong)
	require.ErrorContains(t, err, missing+"\nthe example of "+wrong.Type+": check event: schema_violation: /email ")
}
