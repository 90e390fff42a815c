package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// table has its headings first. It cuts no value and uses no colours. A column of free text comes last.
type table [][]string

func (v view) table(rows []item, wide bool) table {
	t := make(table, len(rows)+1)
	for column := range strings.SplitSeq(v.columns, ",") {
		parts := append(strings.Fields(column), "")
		name, isWide := strings.CutSuffix(parts[0], "+")
		if isWide && !wide {
			continue
		}
		t[0] = append(t[0], strings.ReplaceAll(name, "_", " "))
		for i, of := range rows {
			t[i+1] = append(t[i+1], cmp.Or(printable(show(of, parts[1], parts[2], wide)), "-"))
		}
	}
	return t
}

func (t table) text(headings bool) string {
	if len(t) == 1 {
		return ""
	}
	if !headings {
		t = t[1:]
	}
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range t {
		_, _ = fmt.Fprintln(aligned, strings.Join(row, "\t"))
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
