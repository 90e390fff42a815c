package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/verify"
)

func TestStatusHasTheFindingsOfTheLastVerification(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	well := listener(t, answers(map[string]string{"stations": `{"service":"customer","causes":[]}`}))
	running, err := json.Marshal(client.Operators{Services: map[string]string{"customer": well}, Token: "t"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, client.OperatorsFile), running, 0o600))
	require.Contains(t, twinbox(t, "status", "--dir", dir).stdout, "All is well.")
	report := verify.Report{"customer": {Findings: []verify.Finding{{Kind: verify.Lost}}}}
	require.NoError(t, verify.WriteReport(dir, report))
	shown := twinbox(t, "status", "--dir", dir)
	require.Zero(t, shown.code)
	require.Regexp(t, `customer +- +twinbox verify +The last verification found 1 lost\.`, shown.stdout)
	require.NotContains(t, shown.stdout, "All is well.")
	elsewhere := at(t, well, "", "status", "--dir", dir)
	require.Contains(t, elsewhere.stdout, "All is well.", "the report is of another system")
}
