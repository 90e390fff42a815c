package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	labelWidth = 43
	valueWidth = 11
	loadWidth  = 8
)

func (r *report) print(w io.Writer) error {
	var t bytes.Buffer
	for _, warning := range r.warnings() {
		fmt.Fprintf(&t, "%s\n\n", warning)
	}
	fmt.Fprintf(&t, "%-*s%*s%*s  %s\n", labelWidth, "GOALS", valueWidth, "figure", loadWidth, "load", "goal")
	for _, g := range r.Goals {
		g.print(&t)
	}
	for _, g := range r.Groups {
		g.print(&t)
	}
	m := r.Machine
	fmt.Fprintf(&t, "\n%d rounds, %d s; %d cores, load average %s before the run, %s, %s\nPostgreSQL %s, broker %s\n",
		r.Rounds, r.Seconds, m.Cores, format(m.Load), m.OS, m.Go, m.PostgreSQL, m.Broker)
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		fmt.Fprintf(&t, "%s=%s ", name, m.Settings[name])
	}
	t.WriteString("\n")
	_, err := w.Write(t.Bytes())
	return err
}

func (g goal) print(t *bytes.Buffer) {
	verdict := "reached"
	switch {
	case !g.isMeasured():
		verdict = "not measured"
	case !g.Reached:
		verdict = "MISSED"
	}
	fmt.Fprintf(t, "%-*s%*s%*s  %-18s %s\n", labelWidth, g.Label, valueWidth, format(g.judged()), loadWidth,
		format(g.Load), g.bar(), verdict)
}

func (g *group) print(t *bytes.Buffer) {
	fmt.Fprintf(t, "\n%s\n", strings.ToUpper(g.Title))
	if g.Note != "" {
		fmt.Fprintf(t, "(%s)\n", g.Note)
	}
	fmt.Fprintf(t, "%-*s%*s%*s%*s%*s\n", labelWidth, "", valueWidth, "median", valueWidth, "min", valueWidth, "max",
		loadWidth, "load")
	for _, f := range g.Figures {
		fmt.Fprintf(t, "%-*s%*s%*s%*s%*s  %s\n", labelWidth, f.Label, valueWidth, format(f.Median), valueWidth,
			format(f.Min), valueWidth, format(f.Max), loadWidth, format(f.highestLoad()), f.Unit)
	}
}

// From 1,000 on it has all digits, below that three.
func format(n number) string {
	v := float64(n)
	switch abs := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case abs >= 999.5:
		return thousands(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
