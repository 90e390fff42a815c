package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sampleReport is made up, with a figure that was not measured.
func sampleReport(quick bool) *relayReport {
	b := &relayBench{plan: fullPlan, sheet: newSheet(relayGroups()...)}
	for _, g := range b.sheet.groups {
		for i, f := range g.Figures {
			if f.ID == "latency.1000.keen.p50" {
				continue
			}
			for round := range 3 {
				b.sheet.add(f.ID, float64((i+1)*1000+round*50)/float64(len(f.Unit)))
			}
		}
	}
	return b.report(facts{
		Cores: 2, OS: "linux/amd64", Go: "go1.26", PostgreSQL: "15.18", Broker: "in process (kfake)",
		Settings: map[string]string{"fsync": "on", "wal_level": "replica", "autovacuum": "on"},
	}, quick, 90*time.Second)
}

func TestTableFitsAHundredColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printTable(&out, sampleReport(true)))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
	}
	require.Contains(t, out.String(), "QUICK RUN")
	golden(t, "table.txt", out.Bytes())
}

func TestPictureIsWellFormedAndTheSame(t *testing.T) {
	t.Parallel()
	svg := sampleReport(false).picture()
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.NotContains(t, string(svg), "NaN")
	golden(t, "relay.svg", svg)
}

// samplePath is made up, with a line that did not keep up.
func samplePath() *pathReport {
	b := &pathBench{plan: fullPathPlan, sheet: newSheet(pathGroups()...)}
	for _, g := range b.sheet.groups {
		for i, f := range g.Figures {
			if strings.HasPrefix(f.ID, "path.1000.stock.") && !strings.HasSuffix(f.ID, ".arrived") {
				continue
			}
			for round := range 3 {
				b.sheet.add(f.ID, float64((len(g.Figures)-i)*100+round*5)/float64(len(f.Unit)))
			}
		}
	}
	b.probes = []probe{{"ours", 2000, 5, true, "p99 12ms"}}
	return b.report(facts{
		Cores: 2, OS: "linux/amd64", Go: "go1.26", PostgreSQL: "15.18", Broker: "in process (kfake)",
		Settings: map[string]string{"fsync": "on"},
	}, false, 90*time.Second)
}

func TestPathReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printTable(&out, samplePath()))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
	}
	golden(t, "path.txt", out.Bytes())
	golden(t, "path.svg", samplePath().picture())
}

func TestPictureEscapesText(t *testing.T) {
	t.Parallel()
	svg := string(chart{title: "a < b & c", panels: []panel{{title: `"p"`, bars: []bar{{label: "<x>"}}}}}.svg())
	require.Contains(t, svg, "a &lt; b &amp; c")
	require.Contains(t, svg, "&lt;x&gt;")
	require.NotContains(t, svg, "<x>")
}

func TestResultHoldsWhatOthersRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, writeReport(sampleReport(true), dir, "relay", io.Discard))
	content, err := os.ReadFile(filepath.Join(dir, "relay.json"))
	require.NoError(t, err)
	var result map[string]any
	require.NoError(t, json.Unmarshal(content, &result))
	for _, key := range []string{
		"ours_over_stock", "ours_over_ceiling", "p50_ms", "p99_ms", "history_ratio", "foreign_tx_ratio", "signup_ratio_8",
		"ours_over_stock_same_backlog", "single_insert_ratio_8",
	} {
		require.IsType(t, float64(0), result[key], key)
	}
	require.Equal(t, true, result["quick"])
	figure := result["groups"].([]any)[0].(map[string]any)["figures"].([]any)[0].(map[string]any)
	require.Equal(t, "drain.stock.same", figure["id"])
	require.Len(t, figure["rounds"], 3)
	require.IsType(t, float64(0), figure["median"])
	require.IsType(t, float64(0), figure["min"])
	require.FileExists(t, filepath.Join(dir, "relay.svg"))
}

func TestQuickRunDoesNotReplaceAFullResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.False(t, isFullResult(dir, "relay"), "there is none")
	require.NoError(t, writeReport(sampleReport(true), dir, "relay", io.Discard))
	require.False(t, isFullResult(dir, "relay"))
	require.NoError(t, writeReport(sampleReport(false), dir, "relay", io.Discard))
	require.True(t, isFullResult(dir, "relay"))
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[number]string{
		0: "0.00", 0.00364: "0.00364", 0.8: "0.8", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234.5: "1,235",
		1234567: "1,234,567", -1234: "-1,234", number(math.NaN()): "-", number(math.Inf(1)): "-",
	} {
		require.Equal(t, want, format(v))
	}
	for v, want := range map[number]string{
		number(math.NaN()): "null", 0: "0", 1.0 / 3: "0.33333", 123456.7: "123457", -0.00001234567: "-0.000012346",
	} {
		doc, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, strings.Replace(string(doc), "-1.2346e-05", "-0.000012346", 1))
	}
}

// A shown number has three digits, also where it is rounded up to one more, and is within half of the last one.
func TestNumbersHaveThreeDigits(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, v float64) {
		shown := format(number(v))
		if v < 999.5 {
			require.Len(t, strings.Trim(strings.ReplaceAll(shown, ".", ""), "-"), 3, "%v: %s", v, shown)
		}
		if v >= 999.5 {
			require.Contains(t, shown, ",", "%v", v)
		}
		read, err := strconv.ParseFloat(strings.ReplaceAll(shown, ",", ""), 64)
		require.NoError(t, err)
		require.InEpsilon(t, v, read, 0.00502)
		require.Equal(t, "-"+shown, format(number(-v)))
	}
	for _, v := range []float64{1, 0.9996, 9.994, 9.996, 10, 99.94, 99.96, 100, 999.4, 999.6, 1000, 999_999.6} {
		check(t, v)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Float64Range(1, 1e9).Draw(t, "v")) })
}

func TestGoals(t *testing.T) {
	t.Parallel()
	require.True(t, newGoal("a", "", "", atLeast, 10, []float64{9, 10, 11}).Reached)
	require.False(t, newGoal("a", "", "", atLeast, 10, []float64{9, 9, 11}).Reached)
	require.True(t, newGoal("a", "", "", atMost, 5, []float64{5}).Reached)
	require.False(t, newGoal("a", "", "", atMost, 5, nil).Reached, "not measured is not reached")
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
