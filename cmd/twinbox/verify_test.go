package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

const (
	aVerdict = `{"done":1000}
{"suspects":1}
{"verdict":{"at":"2026-11-21T10:00:00Z","produced":[{"topic":"users","published":2,"records":1}],"consumed":[],
"checks":[],"findings":[%s],"unverifiable":[%s]}}
`
	aFinding = `{"kind":"lost","rule":"V1","subject":"users","event_id":"e-1","key":"k-1","version":2,"detail":"gone"}`
	aReason  = `{"subject":"users","reason":"the topic does not hold it any more","events":18}`
)

// What a script sees is the exit code: right, wrong, or not all of it known.
func TestAVerdictsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		findings, reasons string
		code              int
		says              string
	}{
		{"", "", service.ExitOK, "verdict: nothing is lost, doubled, altered, invented or reordered, as of"},
		{"", aReason, exitPartial, "verdict: nothing is wrong in what could be verified, as of"},
		{aFinding, aReason, service.ExitFailure, "verdict: something is wrong, as of"},
	} {
		oneLine := fmt.Sprintf(aVerdict, c.findings, c.reasons)
		customer := listener(t, says(joined(oneLine)))
		r := at(t, customer, "", "verify")
		require.Equal(t, c.code, r.code, r.stderr)
		require.Contains(t, r.stdout, c.says)
		require.Contains(t, r.stderr, "1 things look wrong and are looked at again")
		if c.findings != "" {
			require.Contains(t, r.stdout, "lost     V1    users  e-1    k-1  2        gone")
		}
		if c.reasons != "" {
			require.Contains(t, r.stdout, "18              users  the topic does not hold it any more")
		}
		r = at(t, customer, "", "verify", "--json")
		require.Equal(t, c.code, r.code)
		var document map[string]verify.Verdict
		r.json(t, &document)
		verdict := document["customer"]
		require.Equal(t, c.code == service.ExitOK, verdict.Clean() && verdict.Whole())
	}
	r := at(t, listener(t, answers(nil)), "", "verify")
	require.Equal(t, service.ExitFailure, r.code)
	require.Contains(t, r.stderr, "unavailable")
	require.Equal(t, service.ExitUsage, at(t, "127.0.0.1:1", "", "verify", "--follow", "--every", "1ms").code)
}

// joined makes the lines of a verdict one again.
func joined(lines string) string {
	var out []byte
	for i := range len(lines) {
		if lines[i] == '\n' && i+1 < len(lines) && lines[i+1] == '"' {
			continue
		}
		out = append(out, lines[i])
	}
	return string(out)
}
