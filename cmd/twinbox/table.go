package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// table cuts no value and uses no colours. A column of free text comes last.
type table struct {
	columns []string
	wide    []string // columns that only -o wide shows

	rows [][]string
}

func (t *table) add(values ...any) {
	row := make([]string, len(t.columns))
	for c := range row {
		row[c] = cmp.Or(printable(fmt.Sprint(values[c])), "-")
	}
	t.rows = append(t.rows, row)
}

func (t *table) text(isWide, headings bool) string {
	if len(t.rows) == 0 {
		return ""
	}
	rows := t.rows
	if headings {
		rows = append([][]string{t.columns}, rows...)
	}
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		var shown []string
		for c, value := range row {
			if isWide || !slices.Contains(t.wide, t.columns[c]) {
				shown = append(shown, value)
			}
		}
		_, _ = fmt.Fprintln(aligned, strings.Join(shown, "\t"))
	}
	_ = aligned.Flush()
	return text.String()
}

// printable keeps foreign records from controlling the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// UTC, as in the logs. The zero time is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}
