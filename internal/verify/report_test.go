package verify_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/verify"
)

func TestTheLastReportIsStored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	_, err := verify.ReadReport(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	at := time.Now().UTC()
	a, b := &verify.Verdict{At: at}, &verify.Verdict{At: at, Findings: []verify.Finding{{Kind: verify.Lost, Rule: "V1"}}}
	require.NoError(t, verify.WriteReport(dir, verify.Report{"a": a, "b": b}))
	a.At = at.Add(time.Minute)
	require.NoError(t, verify.WriteReport(dir, verify.Report{"a": a}))
	report, err := verify.ReadReport(dir)
	require.NoError(t, err)
	require.Equal(t, verify.Report{"a": a, "b": b}, report)
	all := report.All()
	require.Equal(t, at, all.At, "the verdict of b is no younger")
	require.Equal(t, "1 lost", all.Summary())
}

func TestAReportNamesTheServicesInOneOrder(t *testing.T) {
	t.Parallel()
	report, want := verify.Report{}, []verify.Finding(nil)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		found := verify.Finding{Subject: name}
		report[name] = &verify.Verdict{Findings: []verify.Finding{found}}
		want = append(want, found)
	}
	for range 10 {
		require.Equal(t, want, report.All().Findings)
	}
}

func TestAServiceWithoutAVerdictHidesNoOther(t *testing.T) {
	t.Parallel()
	s := settled(t)
	system := verify.System{Services: []verify.Service{{Name: "a", Database: "postgres://127.0.0.1:1/a"}, {Name: "b"}}}
	report, err := system.Verify(t.Context(), func(of verify.Service) verify.Config {
		cfg := s.config()
		cfg.Database = cmp.Or(of.Database, cfg.Database)
		return cfg
	})
	require.ErrorContains(t, err, "a: connect to the database")
	require.Len(t, report, 1)
	requireWhole(t, report["b"])
}

func TestAVerdictInWords(t *testing.T) {
	t.Parallel()
	found := func(kinds ...verify.Kind) *verify.Verdict {
		v := &verify.Verdict{}
		for _, kind := range kinds {
			v.Findings = append(v.Findings, verify.Finding{Kind: kind})
		}
		return v
	}
	require.Equal(t, "nothing is lost, doubled, altered, invented or reordered", found().Summary())
	require.Equal(t, "1 invented", found(verify.Ghost).Summary())
	require.Equal(t, "2 lost, 1 doubled", found(verify.Lost, verify.Twice, verify.Lost).Summary())
	partly := &verify.Verdict{Unverifiable: []verify.Unverifiable{{Events: 1}}}
	require.Equal(t, "nothing is wrong in what could be verified", partly.Summary())
}
