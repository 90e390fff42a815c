package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// table is rows under a heading, for people: --json is for programs. It uses neither colours nor anything beyond the
// characters of its values, so that it reads the same on every terminal.
//
// Nothing in it is ever cut: a time or a number cut short is another one, and an id has to be typed. Where the screen
// is too narrow, free text takes several lines, then columns are left out, and where that is not enough each row is
// written as lines.
type table struct {
	title   string // a line above it
	columns []string
	prose   string   // a column of free text
	omit    []string // columns that a narrow screen does without, in this order; -o wide has them
	none    string   // what is said where there are no rows
	bare    bool     // without its heading

	rows   [][]string
	widths []int // of the widest values there have been
}

// add adds a row. Values without a column are not shown, and what is empty is a dash.
func (t *table) add(values ...any) {
	if t.widths == nil {
		for _, name := range t.columns {
			t.widths = append(t.widths, len(name))
		}
	}
	row := make([]string, len(t.columns))
	for c := range row {
		row[c] = cmp.Or(printable(fmt.Sprint(values[c])), "-")
		t.widths[c] = max(t.widths[c], utf8.RuneCountInString(row[c]))
	}
	t.rows = append(t.rows, row)
}

const (
	gap         = 2  // between columns
	readable    = 24 // what a column of free text has at least, if it needs that much
	unknownWide = 0  // the output is no terminal
)

// text is the table as it fits a screen.
func (t *table) text(screen int) string {
	if len(t.rows) == 0 {
		return t.none
	}
	var text strings.Builder
	widths := t.fit(cmp.Or(screen, math.MaxInt32))
	if widths == nil {
		for i, row := range t.rows {
			if i > 0 {
				text.WriteString("\n")
			}
			for c, value := range row {
				fmt.Fprintf(&text, "%s: %s\n", strings.ToLower(t.columns[c]), value)
			}
		}
		return text.String()
	}
	text.WriteString(t.title)
	if !t.bare {
		t.writeRow(&text, t.columns, widths)
	}
	for _, row := range t.rows {
		t.writeRow(&text, row, widths)
	}
	var missing []string
	for c, name := range t.columns {
		if widths[c] == 0 {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		fmt.Fprintf(&text, "(not shown at this width: %s; -o wide has all)\n", strings.Join(missing, ", "))
	}
	return text.String()
}

// fit are the widths of the columns on a screen, 0 for one that is left out; nil where it is too narrow for the others.
func (t *table) fit(screen int) []int {
	widths, prose := slices.Clone(t.widths), slices.Index(t.columns, t.prose)
	if prose >= 0 {
		widths[prose] = min(widths[prose], readable)
	}
	for next := 0; ; next++ {
		spare := screen + gap
		for _, width := range widths {
			if width > 0 {
				spare -= width + gap
			}
		}
		switch {
		case spare >= 0 && prose >= 0 && widths[prose] > 0:
			widths[prose] = min(t.widths[prose], widths[prose]+spare)
			return widths
		case spare >= 0:
			return widths
		case next == len(t.omit):
			return nil
		}
		widths[slices.Index(t.columns, t.omit[next])] = 0
	}
}

// writeRow writes a row, in as many lines as its free text needs.
func (t *table) writeRow(text *strings.Builder, row []string, widths []int) {
	parts := []string{""}
	prose := slices.Index(t.columns, t.prose)
	if prose >= 0 && widths[prose] > 0 {
		parts = wrapped(row[prose], widths[prose])
	}
	for i, part := range parts {
		var line strings.Builder
		for c, value := range row {
			switch {
			case c == prose:
				value = part
			case i > 0:
				value = ""
			}
			if widths[c] > 0 {
				line.WriteString(value + strings.Repeat(" ", widths[c]-utf8.RuneCountInString(value)+gap))
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// wrapped are the lines of a text, at least one. A word that is longer than a line is broken.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
		for rest := []rune(line); len(rest) > width; rest = []rune(line) {
			lines, line = append(lines, string(rest[:width])), string(rest[width:])
		}
	}
	return append(lines, line)
}

// printable keeps what foreign records hold from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// moment writes a time in UTC, to the second: what is compared with logs. One that is not known is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// value is what may not be known, else the zero value.
func value[T any](known *T) (v T) {
	if known != nil {
		v = *known
	}
	return v
}

// seconds writes how long something has lasted.
func seconds(n float64) string {
	if n == 0 {
		return ""
	}
	return time.Duration(n * float64(time.Second)).Round(time.Second).String()
}
