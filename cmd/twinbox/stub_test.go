package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

// listener answers in the name of the service that the request means.
func listener(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	return website(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Twinbox-Service", r.Header.Get("Twinbox-Service"))
		handler(w, r)
	})
}

func website(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// A path without a text gets 503.
func answers(texts map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, known := texts[strings.TrimPrefix(r.URL.Path, "/admin/v1/")+idOf(r)]
		if !known {
			w.WriteHeader(http.StatusServiceUnavailable)
			text = `{"code":"unavailable","status":503,"detail":"no"}`
		}
		_, _ = io.WriteString(w, text)
	}
}

// idOf is that of a story: "/ID".
func idOf(r *http.Request) string {
	var asked struct{ ID string }
	if strings.HasSuffix(r.URL.Path, "/story") && json.NewDecoder(r.Body).Decode(&asked) == nil {
		return "/" + asked.ID
	}
	return ""
}

func at(t *testing.T, customer, notification string, args ...string) result {
	t.Helper()
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte("t"), 0o600))
	args = append(args, "--token-file", tokenFile)
	for _, admin := range []string{"customer=" + customer, "notification=" + notification} {
		if !strings.HasSuffix(admin, "=") {
			args = append(args, "--admin", admin)
		}
	}
	return twinbox(t, args...)
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]http.HandlerFunc{
		"nothing is there":          http.NotFound,
		"a page of another program": says("<!doctype html>"),
		"JSON of another program":   says(`{}`),
		"the service's own API": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"not_found","status":404,"detail":"There is nothing at this path."}`)
		},
	} {
		addr := website(t, page)
		for _, command := range []string{"outbox status", "dlq list", "dlq show 17", "dlq discard 17 --yes --reason r"} {
			r := at(t, addr, "", strings.Fields(command)...)
			require.Equal(t, service.ExitFailure, r.code, "%s: %s: %s%s", name, command, r.stdout, r.stderr)
			require.Empty(t, r.stdout, "%s: %s", name, command)
			require.Contains(t, r.stderr, "is not its admin listener", "%s: %s", name, command)
		}
	}

	cut := at(t, listener(t, says(`{"done":7}`+"\n")), "", "outbox", "republish", "--key", "k", "--yes", "--reason", "r")
	require.Equal(t, exitPartial, cut.code)
	require.Contains(t, cut.stderr, "was cut off")
	require.Equal(t, "Republished 7 events of customer.\n", cut.stdout, "what is known to be done is said")
}

const patience = 30 * time.Second

type result struct {
	code           int
	stdout, stderr string
}

func twinbox(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func (r result) json(t *testing.T, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	require.NoError(t, decoder.Decode(into), r.stdout)
	require.False(t, decoder.More(), "one document: %s", r.stdout)
}
