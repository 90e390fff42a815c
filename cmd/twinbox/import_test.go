package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/deadletter"
)

// What a service says to have filed before its answer ends stays filed, so it is said.
func TestAnImportThatEndsEarlySaysWhatIsDone(t *testing.T) {
	t.Parallel()
	customer := listener(t, answers(map[string]string{"service": aCustomer, "dead-letters/import": `{"done":2}` + "\n"}))
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"consumer\":\"customer.profile\"}\n"), 0o600))
	args := []string{"dlq", "import", file, "--yes", "--reason", "r"}
	plain := at(t, customer, "", args...)
	require.Equal(t, exitPartial, plain.code, plain.stderr)
	require.Contains(t, plain.stdout, "Imported 2 dead letters of customer.")
	require.Contains(t, plain.stderr, "was cut off")
	var sum effects
	asJSON := at(t, customer, "", append(args, "--json")...)
	require.Equal(t, exitPartial, asJSON.code)
	asJSON.json(t, &sum)
	require.EqualValues(t, 2, sum.Count)
}

// A line that is too long is reported with its number; the lines around it are filed.
func TestAnImportedLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	customer := listener(t, func(w http.ResponseWriter, r *http.Request) {
		texts := map[string]string{"service": aCustomer}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			texts["dead-letters/import"] = `{"result":{"dry_run":false,"count":1,"failed":0}}` + "\n"
		}
		answers(texts)(w, r)
	})
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	content := "{\"consumer\":\"customer.profile\"}\n" + strings.Repeat("x", operate.MaxLine+1)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	r := at(t, customer, "", "dlq", "import", file, "--yes", "--reason", "r")
	require.Equal(t, exitPartial, r.code, r.stderr)
	require.Contains(t, r.stdout, "Imported 1 dead letter of customer.")
	require.Regexp(t, `line 2 +line_too_long`, r.stdout)
}

// A service that takes no more lines says why, and that is what is said: not that a line could not be sent.
func TestWhyAnImportIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	content := strings.Repeat("{\"consumer\":\"customer.profile\"}\n{\"consumer\":\"notification.mail\"}\n", 2000)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	customer := listener(t, answers(map[string]string{"service": aCustomer}))
	notification := listener(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answers(map[string]string{
			"service": aNotification, "dead-letters/import": `{"result":{"dry_run":false,"count":1,"failed":0}}`,
		})(w, r)
	})
	for range 20 {
		r := at(t, customer, notification, "dlq", "import", file, "--yes", "--reason", "r")
		require.Contains(t, r.stderr, "customer: no (unavailable)")
	}
}
