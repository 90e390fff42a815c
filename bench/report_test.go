package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
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
	r := sampleReport(true)
	table := r.table()
	for line := range strings.Lines(string(table)) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 100, line)
	}
	const file = "testdata/table.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, table, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(table))
	for _, load := range []number{0.9, number(math.NaN())} { // less than half of the cores, not known
		r.Machine.Load = load
		require.Len(t, r.warnings(), 1)
	}
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
