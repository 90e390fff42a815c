package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// smokeInboxPlan is everything once, as small as it can be.
var smokeInboxPlan = inboxPlan{
	Rounds: 1, Partitions: []int{12}, Slow: map[int]int{12: 300}, Fast: map[int]int{12: 600}, Keys: 96,
	History: 3_000, Days: 3, PastKeys: 100, KeepDatabases: true, NoSync: true,
}

func TestInboxBenchmarkMeasuresEverything(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	var progress bytes.Buffer
	to := streams{out: new(bytes.Buffer), err: &progress}
	c := InboxCommand{options: options{Dir: dir, Out: out, Profile: filepath.Join(out, "profiles")}}
	report, err := c.measure(t.Context(), to, smokeInboxPlan)
	require.NoError(t, err, progress.String())
	require.NoError(t, c.save(report, true, to))

	measured := map[string]bool{}
	for _, g := range report.Groups {
		for _, f := range g.Figures {
			measured[f.ID] = true
		}
	}
	for _, g := range inboxGroups() {
		for _, f := range g.Figures {
			if !strings.HasPrefix(f.ID, "rate.1.") && !strings.HasPrefix(f.ID, "rate.48.") {
				require.True(t, measured[f.ID], f.ID)
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(out, "inbox.json"))
	require.NoError(t, err)
	require.NotContains(t, string(content), dir, "no paths in a result")
	var result map[string]any
	require.NoError(t, json.Unmarshal(content, &result))
	for _, key := range []string{
		"batch200_over_by_hand", "batch200_over_ceiling", "batch1_over_by_hand", "history_ratio",
	} {
		require.Positive(t, result[key], key)
	}
	for _, name := range []string{"cpu-batch200.pprof", "cpu-hand.pprof"} {
		require.FileExists(t, filepath.Join(out, "profiles", name))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the database's files are gone")
}

func TestRecordsAreLaidOutEvenly(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, duplicates := range []int{1, 50} {
		r := newRecords(4_000, 12, 96, duplicates, base)
		require.InDelta(t, 4_000*(100-duplicates)/100, r.events, 100)
		versions := map[string]int64{}
		for i, n := range r.numbers {
			e := r.event(i)
			require.Equal(t, i%12, n%12, "a redelivery comes in its event's partition")
			if r.isNew(i) {
				versions[e.Key]++
			}
			require.Equal(t, versions[e.Key], e.Version, "new ones count up, redeliveries repeat the newest")
			number, err := numberOf(e.ID)
			require.NoError(t, err)
			require.Equal(t, n, number)
			require.Less(t, e.ID, idAt(r.until(), 0))
			require.GreaterOrEqual(t, e.ID, idAt(base, 0))
		}
	}
}

func TestHandlingKnowsWhenAllIsDone(t *testing.T) {
	t.Parallel()
	h := newHandling(newRecords(5, 2, 2, 0, time.Now()))
	h.begin()
	for i := range 5 {
		require.NotPanics(t, func() { h.handled(int32(i%2), int64(i/2)) })
		h.handled(0, 0) // again
	}
	require.NoError(t, h.wait(t.Context()))
	require.Equal(t, 5, h.again)
	require.Positive(t, h.rate())

	h.handled(1, 2)
	require.ErrorContains(t, h.wait(t.Context()), "no record of this run")
}

// sampleInboxReport is made up.
func sampleInboxReport(quick bool) *inboxReport {
	b := &inboxBench{plan: fullInboxPlan, sheet: newSheet(inboxGroups()...)}
	for _, g := range b.sheet.groups {
		for i, f := range g.Figures {
			for round := range 3 {
				b.sheet.add(f.ID, float64((i+1)*1000+round*50))
			}
		}
	}
	return b.report(facts{
		Cores: 2, OS: "linux/amd64", Go: "go1.26", PostgreSQL: "15.18", Broker: "in process (kfake)",
		Settings: map[string]string{"fsync": "on", "wal_level": "replica", "autovacuum": "on"},
	}, quick, 90*time.Second)
}

func TestInboxTableFitsAHundredColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printTable(&out, sampleInboxReport(true)))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
	}
	golden(t, "inbox.txt", out.Bytes())
}

func TestInboxPictureIsWellFormedAndTheSame(t *testing.T) {
	t.Parallel()
	svg := sampleInboxReport(false).picture()
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	golden(t, "inbox.svg", svg)
}
