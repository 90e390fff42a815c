package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func example() *table {
	t := &table{columns: []string{"ID", "KEY", "ERROR"}, prose: []string{"ERROR"}}
	t.add("customer/1", "ada", "check event: schema_violation: /name type")
	t.add("customer/12", "b\x1b[31m\n\xff", "gone")
	return t
}

func TestTables(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /name type\n" +
			"customer/12  b?[31m??  gone\n",
		60: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /nam..\n" +
			"customer/12  b?[31m??  gone\n",
		20: "" +
			"id: customer/1\nkey: ada\nerror: check event: schema_violation: /name type\n" +
			"\nid: customer/12\nkey: b?[31m??\nerror: gone\n",
	} {
		var out strings.Builder
		require.NoError(t, example().write(&out, width))
		require.Equal(t, want, out.String(), "width %d", width)
	}
	var none strings.Builder
	require.NoError(t, (&table{columns: []string{"ID"}}).write(&none, 80))
	require.Empty(t, none.String())
	require.Error(t, example().write(failing{errors.New("full")}, 0))
}

// A table of anything fits the screen, with every cut seen, or each of its rows is written as lines.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 12).Draw(t, "columns")
		width := rapid.IntRange(narrow, 160).Draw(t, "width")
		value := rapid.StringOfN(rapid.RuneFrom([]rune("aé世 \x1b\n")), 0, 60, -1)
		whole := &table{}
		for c := range columns {
			whole.columns = append(whole.columns, fmt.Sprint("COLUMN", c))
		}
		whole.prose = rapid.SliceOfN(rapid.SampledFrom(whole.columns), 0, columns).Draw(t, "prose")
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			row := make([]any, columns)
			for c := range row {
				row[c] = value.Draw(t, "value")
			}
			whole.add(row...)
		}
		var cut, uncut strings.Builder
		require.NoError(t, whole.write(&cut, width))
		require.NoError(t, whole.write(&uncut, unknownWide))
		if _, fits := whole.shown(width); !fits {
			require.NotContains(t, cut.String(), "..")
			return
		}
		longest := func(text string) (n int) {
			for line := range strings.Lines(text) {
				n = max(n, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
			return n
		}
		require.Equal(t, len(whole.rows)+1, strings.Count(cut.String(), "\n"), "a line each")
		require.LessOrEqual(t, longest(cut.String()), width)
		if !strings.Contains(cut.String(), "..") {
			require.Equal(t, uncut.String(), cut.String(), "what is cut says so")
		}
	})
}

// A narrow screen does without columns rather than cut a time or a number, and shows as many as it has room for.
func TestWhatANarrowTableLeavesOut(t *testing.T) {
	t.Parallel()
	shown := func(width int) string {
		t.Helper()
		c := OutboxTail{}
		tail := c.table()
		tail.add("notification", 1, "2026-11-22T11:26:37Z", "com.example.customer.user-registered.v1", aKey, 1,
			"published", anID)
		var out strings.Builder
		require.NoError(t, tail.write(&out, width))
		require.NotContains(t, out.String(), "..")
		heading, _, _ := strings.Cut(out.String(), "\n")
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
	status := &table{columns: []string{"SERVICE", "SINCE", "WHY", "MORE"}, wraps: "WHY", omit: []string{"SINCE", "MORE"}}
	status.add("notification", "2026-11-22T11:26:37Z", why, "twinbox outbox status")
	status.add("customer", "-", "All is well.", "-")
	for _, width := range []int{narrow, 80, 100, 132, unknownWide} {
		var out strings.Builder
		require.NoError(t, status.write(&out, width))
		var words []string
		for line := range strings.Lines(out.String()) {
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
