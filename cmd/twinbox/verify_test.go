package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

func TestAVerdictsExitCode(t *testing.T) {
	t.Parallel()
	finding := verify.Finding{
		Kind: verify.Lost, Rule: "V1", Subject: "users", EventID: "e-1", Type: "t-1", Key: "k-1", Version: 2, Detail: "gone",
	}
	reason := verify.Unverifiable{Subject: "users", Reason: verify.TopicForgot, Events: 18}
	for _, c := range []struct {
		verdict verify.Verdict
		code    int
		says    []string
	}{
		{verify.Verdict{}, service.ExitOK, []string{
			"verdict of customer: nothing is lost, doubled, altered, invented or reordered, as",
		}},
		{verify.Verdict{Unverifiable: []verify.Unverifiable{reason}}, exitPartial, []string{
			"verdict of customer: nothing is wrong in what could be verified, as of",
			"18              users  the topic does not hold it any more",
		}},
		{
			verify.Verdict{Findings: []verify.Finding{finding}, Unverifiable: []verify.Unverifiable{reason}},
			service.ExitFailure,
			[]string{"verdict of customer: 1 lost, as of", "lost     V1    users  e-1    t-1   k-1  2        gone"},
		},
	} {
		report := verify.Report{"customer": &c.verdict}
		require.Equal(t, c.code, exitCode(errorOf(report, nil)))
		require.Equal(t, service.ExitFailure, exitCode(errorOf(report, errors.New("the other one is down"))))
		var out bytes.Buffer
		new(verifyCommand).write(report, &streams{Answer: &Answer{}, out: &out})
		for _, text := range c.says {
			require.Contains(t, out.String(), text)
		}
	}
	for _, args := range [][]string{
		{"--follow", "--every", "1ms"},
		{"--since", "2199-01-01T00:00:00Z"},
		{"--database", "customer=postgres:///x"},
		{"--admin", "customer=127.0.0.1:1"},
		{"--customer-admin", "127.0.0.1:1"},
		{"--token-file", "token"},
		{"--environment", "here"},
		{"--brokers", "127.0.0.1:1"},
		{"--database", "nobody=postgres:///x", "--brokers", "127.0.0.1:1"},
		{"--database", "customer=postgres:///x", "--brokers", "127.0.0.1:1", "--service", "notification"},
	} {
		r := twinbox(t, append([]string{"verify", "--dir", t.TempDir()}, args...)...)
		require.Equal(t, service.ExitUsage, r.code, args)
	}
	r := twinbox(t, "verify", "--dir", t.TempDir())
	require.Equal(t, service.ExitFailure, r.code)
	require.Contains(t, r.stderr, "or give --database and --brokers")
}
