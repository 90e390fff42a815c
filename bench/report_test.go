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

// Stock did not keep up, and the path was not measured.
func sampleReport(quick bool) *report {
	b := newRelay(&stage{}, relayPlans[false])
	for _, g := range b.sheet.groups {
		for i, f := range g.Figures {
			if f.ID == "latency.1000.stock.p50" {
				continue
			}
			for round := range 3 {
				b.sheet.load = float64(round) + 0.25
				b.sheet.add(f.ID, float64((i+1)*1000+round*50)/float64(len(f.Unit)))
			}
		}
	}
	b.goals = append(b.goals, newPath(&stage{}, pathPlans[false]).goals[3:]...)
	for _, g := range newPath(&stage{}, pathPlans[false]).sheet.groups {
		for _, f := range g.Figures {
			if b.sheet.byID[f.ID] == nil {
				b.sheet.byID[f.ID] = f
			}
		}
	}
	return b.report(machine{
		Cores: 2, Load: 1.5, OS: "linux/amd64", Go: "go1.26", PostgreSQL: "15.18", Broker: "in process (kfake)",
		Settings: map[string]string{"fsync": "on", "wal_level": "replica", "autovacuum": "on"},
	}, quick, 3, 90*time.Second)
}

func TestTableFitsAHundredColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, sampleReport(true).print(&out))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
	}
	golden(t, "table.txt", out.Bytes())
}

func TestGoalsAreOfFiguresThatFit(t *testing.T) {
	t.Parallel()
	for name, b := range smokes() {
		for _, g := range b.goals {
			require.LessOrEqual(t, len(g.Label), labelWidth, g.Label)
			require.NotContains(t, g.ID, " ")
			for _, id := range []string{g.value.of, g.value.over, g.stock.of, g.stock.over} {
				require.True(t, id == "" || b.sheet.byID[id] != nil, "%s %s: %s", name, g.ID, id)
			}
		}
		for _, g := range b.sheet.groups {
			for _, f := range g.Figures {
				require.LessOrEqual(t, len(f.Label), labelWidth, f.Label)
			}
		}
	}
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
	golden(t, "picture.svg", svg)
}

func TestPictureEscapesText(t *testing.T) {
	t.Parallel()
	svg := string(drawSVG("a < b & c", []string{`"l"`}, []*group{{Title: `"p"`, Figures: []*figure{{Label: "<x>"}}}}))
	require.Contains(t, svg, "a &lt; b &amp; c")
	require.Contains(t, svg, "&lt;x&gt;")
	require.NotContains(t, svg, "<x>")
}

func TestResultHoldsLoadAndWarnings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sampleReport(true)
	require.Len(t, r.warnings(), 2, "quick, and on a loaded machine")
	require.NoError(t, r.write(dir, "relay", io.Discard))
	content, err := os.ReadFile(filepath.Join(dir, "relay.json"))
	require.NoError(t, err)
	var result map[string]any
	require.NoError(t, json.Unmarshal(content, &result))
	require.Equal(t, true, result["quick"])
	require.InDelta(t, 1.5, result["machine"].(map[string]any)["load_average"], 0)
	figure := result["groups"].([]any)[0].(map[string]any)["figures"].([]any)[0].(map[string]any)
	require.Equal(t, "drain.stock.same", figure["id"])
	require.Len(t, figure["rounds"], 3)
	require.Equal(t, []any{0.25, 1.25, 2.25}, figure["load_averages"])
	goal := result["goals"].([]any)[0].(map[string]any)
	require.InDelta(t, 2.25, goal["load_average"], 0, "the highest")

	r.Machine.Load = 0.9
	require.Len(t, r.warnings(), 1, "less than half of the cores")
	r.Machine.Load = number(math.NaN())
	require.Len(t, r.warnings(), 1, "not known")
}

func TestGoals(t *testing.T) {
	t.Parallel()
	s := newSheet(&group{Figures: []*figure{{ID: "ours"}, {ID: "stock"}, {ID: "slow"}, {ID: "none"}}})
	for _, v := range []float64{9, 10, 12} {
		s.add("ours", v)
		s.add("stock", v/2)
	}
	s.add("slow", 11)
	s.add("slow", math.NaN())
	of := func(id string) quotient { return quotient{of: id} }
	for name, tc := range map[string]struct {
		goal    goal
		reached bool
	}{
		"at least":                {goal{Bound: atLeast, Limit: 10, value: of("ours")}, true},
		"less":                    {goal{Bound: atLeast, Limit: 10.5, value: of("ours")}, false},
		"at most":                 {goal{Bound: atMost, Limit: 10, value: of("ours")}, true},
		"more":                    {goal{Bound: atMost, Limit: 9.5, value: of("ours")}, false},
		"the slowest counts":      {goal{Bound: atMost, Limit: 10, value: of("ours"), worst: true}, false},
		"a ratio, round by round": {goal{Bound: atLeast, Limit: 2, value: quotient{"ours", "stock"}}, true},
		"stock is the limit":      {goal{Bound: atMost, value: of("ours"), stock: of("slow")}, true},
		"stock is faster":         {goal{Bound: atMost, value: of("ours"), stock: of("stock")}, false},
		"stock did not keep up":   {goal{Bound: atMost, value: of("ours"), stock: of("none")}, true},
		"not measured":            {goal{Bound: atMost, Limit: 10, value: of("none")}, false},
		"neither":                 {goal{Bound: atMost, value: of("none"), stock: of("none")}, false},
	} {
		require.Equal(t, tc.reached, tc.goal.judge(s).Reached, name)
	}
	require.Len(t, s.rounds(of("slow")), 1, "NaN is no value")
	require.Len(t, s.rounds(quotient{"ours", "slow"}), 1, "a round that is missing is left out")
	require.Panics(t, func() { s.add("misspelt", 1) })
}

func TestSummarise(t *testing.T) {
	t.Parallel()
	values := []number{9, 1, 5}
	require.Equal(t, summary{Median: 5, Min: 1, Max: 9}, summarise(values))
	require.Equal(t, []number{9, 1, 5}, values, "left as they were")
	require.Equal(t, summary{Median: 2.5, Min: 1, Max: 4}, summarise([]number{4, 1, 3, 2}))
	require.True(t, math.IsNaN(float64(summarise(nil).Max)), "not measured is not zero")
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * time.Millisecond
	}
	for p, want := range map[float64]float64{0: 1, 1: 1, 50: 50, 99: 99, 99.5: 100, 100: 100} {
		require.InDelta(t, want, percentile(hundred, p), 0, "p%v", p)
	}
	require.True(t, math.IsNaN(percentile(nil, 50)))
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[number]string{
		0: "0", 0.00364: "0.00364", 0.8: "0.8", 10: "10", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234.5: "1,235",
		1234567: "1,234,567", number(math.NaN()): "-", number(math.Inf(1)): "-",
	} {
		require.Equal(t, want, format(v))
	}
	for v, want := range map[number]string{
		number(math.NaN()): "null", 0: "0", 1.0 / 3: "0.333333", 123456.7: "123457", -0.00001234567: "-1.23457e-05",
	} {
		doc, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(doc))
	}
}

func TestNumbersHaveAtMostThreeDigits(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, v float64) {
		shown := format(number(v))
		if v < 999.5 {
			require.LessOrEqual(t, len(strings.ReplaceAll(shown, ".", "")), 3, "%v: %s", v, shown)
		}
		read, err := strconv.ParseFloat(strings.ReplaceAll(shown, ",", ""), 64)
		require.NoError(t, err)
		require.InEpsilon(t, v, read, 0.00502)
	}
	for _, v := range []float64{1, 0.9996, 9.994, 9.996, 10, 99.94, 99.96, 100, 999.4, 999.6, 1000, 999_999.6} {
		check(t, v)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Float64Range(1, 1e9).Draw(t, "v")) })
}

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
