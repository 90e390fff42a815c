package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

func TestConsole(t *testing.T) {
	customer := listener(t, answers(map[string]string{"stations": `{"status":"ready"}`}))
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte("t"), 0o600))
	t.Setenv(tokenVariable, "")
	dir := t.TempDir()
	report := verify.Report{"customer": {Findings: []verify.Finding{{Kind: verify.Lost}}}}
	require.NoError(t, verify.WriteReport(dir, report))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"with a token":    {[]string{"--token-file", tokenFile, "--link", "Mailbox=http://127.0.0.1:8025"}, "signs in"},
		"without a token": {nil, "read-only"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out, written := io.Pipe()
		var stderr bytes.Buffer
		ended := make(chan int, 1)
		go func() {
			args := []string{"console", "--dir", dir, "--admin", "customer=" + customer, "--addr", "127.0.0.1:0"}
			ended <- run(ctx, append(args, c.args...), written, &stderr)
		}()
		said := make([]byte, 4096)
		n, err := out.Read(said)
		require.NoError(t, err, stderr.String())
		require.Contains(t, string(said[:n]), c.says, name)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(
			regexp.MustCompile(`http://127\S+`).FindString(string(said[:n])))
		require.NoError(t, err, name)
		shown, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Equal(t, http.StatusOK, response.StatusCode, name)
		require.NotContains(t, string(shown), "1 lost", "%s: the report is of another system", name)
		cancel()
		require.Equal(t, service.ExitOK, <-ended, "%s: %s", name, stderr.String())
	}
	refused := twinbox(t, "console", "--admin", "customer="+customer, "--link", "Mailbox")
	require.Equal(t, service.ExitUsage, refused.code)
	require.Contains(t, refused.stderr, "TITLE=URL")
	taken := twinbox(t, "console", "--admin", "customer="+customer, "--addr", "256.1.1.1:1")
	require.Equal(t, service.ExitFailure, taken.code)
}
