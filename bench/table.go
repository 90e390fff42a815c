package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Column widths; a line is at most 100 columns.
const (
	labelWidth = 51
	valueWidth = 11
)

func writeGoals(t *bytes.Buffer, goals []goal) {
	fmt.Fprintf(t, "%-*s%*s  %s\n", labelWidth, "GOALS", valueWidth, "median", "goal")
	for _, g := range goals {
		verdict := "reached"
		switch {
		case math.IsNaN(float64(g.Median)):
			verdict = "not measured"
		case !g.Reached:
			verdict = "MISSED"
		}
		limit := strings.TrimSpace(fmt.Sprintf("%s %s %s", g.Bound, format(g.Limit), g.Unit))
		fmt.Fprintf(t, "%-*s%*s  %-16s %s\n", labelWidth, g.Label, valueWidth, format(g.Median), limit, verdict)
	}
}

func writeGroup(t *bytes.Buffer, g *group) {
	fmt.Fprintf(t, "\n%s\n", strings.ToUpper(g.Title))
	if g.Note != "" {
		fmt.Fprintf(t, "(%s)\n", g.Note)
	}
	fmt.Fprintf(t, "%-*s%*s%*s%*s\n", labelWidth, "", valueWidth, "median", valueWidth, "min", valueWidth, "max")
	for _, f := range g.Figures {
		fmt.Fprintf(t, "%-*s%*s%*s%*s  %s\n", labelWidth, f.Label, valueWidth, format(f.Median), valueWidth, format(f.Min),
			valueWidth, format(f.Max), f.Unit)
	}
}

func writeFacts(t *bytes.Buffer, head heading, m facts) {
	fmt.Fprintf(t, "\n%d rounds, %d s; %d cores, %s, %s, PostgreSQL %s, broker %s\n", head.Rounds, head.Seconds, m.Cores,
		m.OS, m.Go, m.PostgreSQL, m.Broker)
	names := make([]string, 0, len(m.Settings))
	for name, value := range m.Settings {
		names = append(names, name+"="+value)
	}
	slices.Sort(names)
	half := (len(names) + 1) / 2
	fmt.Fprintf(t, "%s\n%s\n", strings.Join(names[:half], " "), strings.Join(names[half:], " "))
}

// format shows three significant digits, and thousands in groups. The limits are where a value is rounded up to one
// digit more.
func format(n number) string {
	v := float64(n)
	switch abs := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case abs >= 999.5:
		return thousands(int64(math.Round(v)))
	case abs >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 0.9995 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
