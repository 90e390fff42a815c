package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPayloadsAsGiven(t *testing.T) {
	t.Parallel()
	customer := listener(t, answers(map[string]string{
		"dead-letters/show": `{"letter":{"id":17,"payload":"bm8=","edited_payload":"e30="},"history":[]}`,
	}))
	file := filepath.Join(t.TempDir(), "payload.json")
	edit := func(payload string, args ...string) result {
		require.NoError(t, os.WriteFile(file, []byte(payload), 0o600))
		return at(t, customer, "", append([]string{"dlq", "edit", "17", "--yes", "--reason", "r"}, args...)...)
	}
	for says, r := range map[string]result{
		"no such file":           edit("", "--payload", file+"x"),
		"the payload is empty":   edit("", "--payload", file, "--header", "x=1"),
		"no editor":              edit("", "--editor", " "),
		"not valid JSON":         edit("{", "--payload", file),
		`--header "=x" is not N`: edit("{}", "--header", "=x"),
		`--header "ce_id" is no`: edit("{}", "--header", "ce_id"),
	} {
		require.Equal(t, 2, r.code, "%s: %s", says, r.stderr)
		require.Contains(t, r.stderr, says)
	}
	require.Contains(t, edit("{}", "--payload", file).stderr, "nothing to do", "what was edited before is what it was")
	r := edit("{}", "--payload", file, "--json")
	require.Zero(t, r.code, r.stderr)
	var sum effects
	r.json(t, &sum)
	require.Zero(t, sum.Count)
	require.False(t, sum.DryRun)
}

func TestHeadersAreSentWithoutAnEditor(t *testing.T) {
	t.Parallel()
	addr, requests := recorder(t)
	r := at(t, "", addr, "dlq", "edit", "17", "--header", "ce_id=a=b", "--editor", "false", "--by", "ada")
	require.Zero(t, r.code, r.stderr)
	require.JSONEq(t, `{"id":17,"by":"ada","reason":"dry run","dry_run":true,"headers":[{"name":"ce_id","value":"YT1i"}]}`,
		requests()[1].body)
}
