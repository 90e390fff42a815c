package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func example() *table {
	t := &table{columns: []string{"ID", "KEY", "ERROR"}, prose: "ERROR", none: "None.\n"}
	t.add("customer/1", "ada", "check event: schema_violation: /name type")
	t.add("customer/12", "b\x1b[31m\n\xff", "gone")
	return t
}

func TestTables(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		unknownWide: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /name type\n" +
			"customer/12  b?[31m??  gone\n",
		60: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /name\n" +
			"                       type\n" +
			"customer/12  b?[31m??  gone\n",
		20: "" +
			"id: customer/1\nkey: ada\nerror: check event: schema_violation: /name type\n" +
			"\nid: customer/12\nkey: b?[31m??\nerror: gone\n",
	} {
		require.Equal(t, want, example().text(width), "width %d", width)
	}
	require.Equal(t, "None.\n", (&table{columns: []string{"ID"}, none: "None.\n"}).text(80))
}

// A table of anything fits the screen, with all of its values, or each of its rows is written as lines.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 12).Draw(t, "columns")
		width := rapid.IntRange(20, 160).Draw(t, "width")
		value := rapid.StringOfN(rapid.RuneFrom([]rune("aé世 \x1b\n")), 0, 60, -1)
		whole := &table{}
		for c := range columns {
			whole.columns = append(whole.columns, fmt.Sprint("COLUMN", c))
		}
		whole.prose = rapid.SampledFrom(append([]string{""}, whole.columns...)).Draw(t, "prose")
		whole.omit = rapid.Permutation(whole.columns).Draw(t, "order")[:rapid.IntRange(0, columns-1).Draw(t, "omit")]
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			row := make([]any, columns)
			for c := range row {
				row[c] = value.Draw(t, "value")
			}
			whole.add(row...)
		}
		text, widths := whole.text(width), whole.fit(width)
		if widths == nil {
			require.Equal(t, (columns+1)*len(whole.rows)-1, strings.Count(text, "\n"), "a line for each value")
			return
		}
		text, _, left := strings.Cut(text, "(not shown at this width")
		require.Equal(t, slices.Contains(widths, 0), left, "what is left out is named")
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width)
		}
		for c, shown := range widths {
			for _, row := range whole.rows {
				if shown > 0 && whole.columns[c] != whole.prose {
					require.Contains(t, text, strings.TrimRight(row[c], " "), "nothing is cut")
				}
			}
		}
	})
}

// A narrow screen does without columns rather than cut a time or a number.
func TestWhatANarrowTableLeavesOut(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	addr := listener(t, everything)
	shown := func(width uint16) string {
		t.Helper()
		_, seen := onScreen(t, width, "outbox", "tail", "--notification-admin", addr)
		heading, _, _ := strings.Cut(seen, "\n")
		return strings.Join(strings.Fields(heading), " ")
	}
	require.Equal(t, "SERVICE POSITION TIME TYPE KEY VERSION STATE EVENT ID", shown(200))
	require.Equal(t, "SERVICE POSITION KEY VERSION STATE EVENT ID", shown(120), "a version, where a time has no room")
	require.Equal(t, "SERVICE POSITION VERSION STATE EVENT ID", shown(80))
}

// A sentence is read to its end, however narrow the screen is.
func TestASentenceTakesTheLinesThatItNeeds(t *testing.T) {
	t.Parallel()
	const why = "The broker has been down since 2026-11-22T11:26:37Z: dial tcp 127.0.0.1:9092: connection refused."
	status := &table{columns: []string{"SERVICE", "SINCE", "WHY", "MORE"}, prose: "WHY", omit: []string{"SINCE", "MORE"}}
	status.add("notification", "2026-11-22T11:26:37Z", why, "twinbox outbox status")
	status.add("customer", "-", "All is well.", "-")
	for _, width := range []int{60, 80, 100, 132, unknownWide} {
		var words []string
		for line := range strings.Lines(status.text(width)) {
			require.LessOrEqual(t, utf8.RuneCountInString(line)-1, cmp.Or(width, 200))
			words = append(words, strings.Fields(line)...)
		}
		at := slices.Index(words, "The")
		for word := range strings.FieldsSeq(why) {
			rest := slices.Index(words[at:], word)
			require.GreaterOrEqual(t, rest, 0, "%s at %d", word, width)
			at += rest
		}
	}
	require.Equal(t, []string{"a", "bcd", "efg", "h i"}, wrapped("a bcdefgh i", 3))
	require.Equal(t, []string{""}, wrapped("", 3))
}
