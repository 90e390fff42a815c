package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

// failureDocument is the document of a command that has nothing to show.
type failureDocument struct {
	Error struct {
		Code string
		Exit int
	}
}

// One service that does not answer is no reason to be silent: what the other one says is a part of the answer, and
// where nothing can be done without it, nothing is done.
func TestOneOfTwoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	customer := listener(t, answers(map[string]string{
		"service": aCustomer, "inbox/events": `{"items":[]}`, "dead-letters/query": `{"items":[]}`,
		"dead-letters/groups": `{"items":[]}`, "outbox/events": `{"items":[]}`,
	}))
	notification := listener(t, answers(nil))
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"consumer":"customer.profile"}`+"\n"), 0o600))
	for _, args := range [][]string{
		{"inbox", "lookup", "e"}, {"dlq", "list"}, {"dlq", "list", "--each"}, {"outbox", "tail"},
	} {
		r := at(t, customer, notification, append(args, "--json")...)
		require.Equal(t, exitPartial, r.code, "%v: %s", args, r.stderr)
		require.Contains(t, r.stderr, "notification: no (unavailable)")
		var document struct{ Items []any }
		r.json(t, &document)
		require.NotNil(t, document.Items, "%v: %s", args, r.stdout)
		require.Equal(t, exitPartial, at(t, customer, notification, args...).code, args)
	}
	for _, args := range [][]string{
		{"mail", "list"},
		{"dlq", "import", file, "--yes", "--reason", "r"},
		{"mail", "retry", "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10", "--yes", "--reason", "r"},
	} {
		r := at(t, customer, notification, append(args, "--json")...)
		require.Equal(t, service.ExitFailure, r.code, "%v: nothing is done, not a part", args)
		var document failureDocument
		r.json(t, &document)
		require.Equal(t, "unavailable", document.Error.Code)
		require.Equal(t, service.ExitFailure, document.Error.Exit)
	}
}
