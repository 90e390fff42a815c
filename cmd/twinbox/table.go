package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// table is rows under a heading, for people: --json is for programs. It uses neither colours nor anything beyond the
// characters of its values, so that it reads the same on every terminal.
type table struct {
	columns []string
	rows    [][]string
	wraps   string   // a column of sentences, which a narrow screen gives several lines
	prose   []string // columns of free text, which a narrow screen cuts; a time or a number cut short is another one
	omit    []string // columns that a narrow screen does without, in this order; -o wide has them
	bare    bool     // without its heading
	least   []int    // widths of an earlier part of the same table
}

func (t *table) add(values ...any) {
	row := make([]string, len(values))
	for i, value := range values {
		row[i] = printable(fmt.Sprint(value))
	}
	t.rows = append(t.rows, row)
}

const (
	gap         = 2  // between columns
	narrow      = 60 // below this a row is written as lines
	narrowest   = 8  // what a column is cut to at most
	readable    = 36 // what a column of sentences has at least
	unknownWide = 0
)

// write writes the table to fit a width; 0 means that the output is no terminal and nothing is cut. Where a screen
// is too narrow for what must not be cut, each row is written as lines.
func (t *table) write(out io.Writer, width int) error {
	if len(t.rows) == 0 {
		return nil
	}
	var text strings.Builder
	shown, fits := t.shown(width)
	if width != unknownWide && (width < narrow || !fits) {
		t.writeNarrow(&text)
	} else {
		t.writeWide(&text, shown, t.widths(shown, width))
		t.writeOmitted(&text, shown)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return &outputError{err}
	}
	return nil
}

func (t *table) writeNarrow(text *strings.Builder) {
	for i, row := range t.rows {
		if i > 0 {
			text.WriteString("\n")
		}
		for c, value := range row {
			fmt.Fprintf(text, "%s: %s\n", strings.ToLower(t.columns[c]), value)
		}
	}
}

func (t *table) writeWide(text *strings.Builder, shown []int, widths []int) {
	lines := t.rows
	if !t.bare {
		lines = append([][]string{t.columns}, t.rows...)
	}
	for _, row := range lines {
		c := slices.Index(t.columns, t.wraps)
		if c < 0 {
			writeLine(text, row, shown, widths)
			continue
		}
		for i, part := range wrapped(row[c], widths[c]) {
			if row = slices.Clone(row); i > 0 {
				row = make([]string, len(row))
			}
			row[c] = part
			writeLine(text, row, shown, widths)
		}
	}
}

func writeLine(text *strings.Builder, row []string, shown, widths []int) {
	var line strings.Builder
	for _, c := range shown {
		value := cut(row[c], widths[c])
		line.WriteString(value)
		line.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(value)+gap))
	}
	text.WriteString(strings.TrimRight(line.String(), " "))
	text.WriteString("\n")
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

func (t *table) writeOmitted(text *strings.Builder, shown []int) {
	var missing []string
	for c, name := range t.columns {
		if !slices.Contains(shown, c) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(text, "(not shown at this width: %s; -o wide has all)\n", strings.Join(missing, ", "))
	}
}

// shown are the columns that there is room for, and whether they fit.
func (t *table) shown(width int) (shown []int, fits bool) {
	for c := range t.columns {
		shown = append(shown, c)
	}
	if width == unknownWide {
		return shown, true
	}
	natural := t.natural()
	total := func(narrowed bool) int {
		total := -gap
		for _, c := range shown {
			total += gap + natural[c]
			if narrowed {
				total -= natural[c] - min(natural[c], t.gives(c))
			}
		}
		return total
	}
	next := 0
	for ; total(true) > width && next < len(t.omit); next++ {
		shown = slices.DeleteFunc(shown, func(c int) bool { return t.columns[c] == t.omit[next] })
	}
	if total(true) > width {
		return shown, false
	}
	// A wide column that went last may leave room for those that went before it.
	for next--; next >= 0; next-- {
		before := shown
		shown = slices.Sorted(slices.Values(append(slices.Clone(before), slices.Index(t.columns, t.omit[next]))))
		if total(false) > width {
			shown = before
		}
	}
	return shown, true
}

// gives is the width to which a column may be narrowed.
func (t *table) gives(c int) int {
	switch name := t.columns[c]; {
	case name == t.wraps:
		return readable
	case slices.Contains(t.prose, name):
		return narrowest
	}
	return math.MaxInt
}

// natural are the widths of the widest values.
func (t *table) natural() []int {
	widths := make([]int, len(t.columns))
	copy(widths, t.least)
	for c, name := range t.columns {
		widths[c] = max(widths[c], len(name))
		for _, row := range t.rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
	}
	return widths
}

// widths are those of the widest values; where they do not fit, the widest column that may be cut gives way first.
func (t *table) widths(shown []int, width int) []int {
	widths, total := t.natural(), -gap
	for _, c := range shown {
		total += widths[c] + gap
	}
	for ; width != unknownWide && total > width; total-- {
		widest := -1
		for _, c := range shown {
			if t.gives(c) < widths[c] && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func cut(value string, width int) string {
	runes := []rune(value)
	if len(runes) <= width {
		return value
	}
	return string(runes[:max(0, width-2)]) + ".."
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

// widthOf is how wide the screen is that the output goes to; 0 if it goes to none.
func widthOf(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return unknownWide
	}
	if width, is := columns(file); is && width > 0 { // a terminal that says 0 does not know, such as one of a job
		return width
	}
	return unknownWide
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, is := columns(file)
	return is
}

// moment writes a time in UTC, to the second: what is compared with logs.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// momentOf writes a time that may not be known.
func momentOf(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(*t)
}

// without takes a column out.
func (t *table) without(name string) {
	c := slices.Index(t.columns, name)
	t.columns = slices.Delete(t.columns, c, c+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], c, c+1)
	}
}
