package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// table is rows under a heading, for people: --json is for programs. It uses neither colours nor anything beyond the
// characters of its values, so that it reads the same on every terminal.
type table struct {
	columns []string
	rows    [][]string
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
	unknownWide = 0
)

// write writes the table to fit a width; 0 means that nobody looks at it and nothing is cut.
func (t *table) write(out io.Writer, width int) error {
	if len(t.rows) == 0 {
		return nil
	}
	var text strings.Builder
	if width != unknownWide && width < narrow {
		t.writeNarrow(&text)
	} else {
		t.writeWide(&text, t.widths(width))
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

func (t *table) writeWide(text *strings.Builder, widths []int) {
	for _, row := range append([][]string{t.columns}, t.rows...) {
		var line strings.Builder
		for c, value := range row {
			value = cut(value, widths[c])
			line.WriteString(value)
			line.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(value)+gap))
		}
		text.WriteString(strings.TrimRight(line.String(), " "))
		text.WriteString("\n")
	}
}

// widths are those of the widest values; where they do not fit, the widest column gives way first.
func (t *table) widths(width int) []int {
	widths, total := make([]int, len(t.columns)), -gap
	for c, name := range t.columns {
		widths[c] = len(name)
		for _, row := range t.rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
		total += widths[c] + gap
	}
	for ; width != unknownWide && total > width; total-- {
		widest := 0
		for c := range widths {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= narrowest {
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
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return unknownWide
	}
	return max(1, width)
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
