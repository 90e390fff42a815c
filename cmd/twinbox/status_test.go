package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/verify"
)

func TestStatusHasTheFindingsOfTheLastVerification(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	well := listener(t, answers(map[string]string{"stations": `{"service":"customer","causes":[]}`}))
	require.Contains(t, at(t, well, "", "status", "--dir", dir).stdout, "All is well.")
	report := verify.Report{"customer": {Findings: []verify.Finding{{Kind: verify.Lost}}}}
	require.NoError(t, verify.WriteReport(dir, report))
	shown := at(t, well, "", "status", "--dir", dir)
	require.Zero(t, shown.code)
	require.Regexp(t, `customer +- +twinbox verify +The last verification found 1 lost\.`, shown.stdout)
	require.NotContains(t, shown.stdout, "All is well.")
}
