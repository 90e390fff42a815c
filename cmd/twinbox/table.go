package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/twinbox/internal/ops/admin/client"
)

// item is a JSON object. Its numbers stay as they came.
type item map[string]any

func (i *item) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(i))
}

// values returns the members of flags or of an answer. The state "all" is not a condition.
func values(of any) (members item) {
	encoded, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(encoded, &members)
	}
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", of, err))
	}
	if members["state"] == "all" {
		delete(members, "state")
	}
	return members
}

func (i item) object(name string) item {
	object, _ := i[name].(map[string]any)
	return object
}

func (i item) items(name string) (items []item) {
	all, _ := i[name].([]any)
	for _, one := range all {
		if object, is := one.(map[string]any); is {
			items = append(items, object)
		}
	}
	return items
}

func (i item) member(path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		return i.object(name).member(rest)
	}
	return i[name]
}

func (i item) text(path string) string {
	if value := i.member(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}

func (i item) time(path string) time.Time {
	at, _ := time.Parse(time.RFC3339, i.text(path))
	return at
}

func (i item) bytes(path string) []byte {
	decoded, _ := base64.StdEncoding.DecodeString(i.text(path))
	return decoded
}

func (i item) isSet(path string) bool {
	value := i.member(path)
	return value != nil && value != false && value != "" && value != json.Number("0")
}

type serviceAnswers []client.Answer[item]

// A view is one table of an answer.
type view struct {
	of     string // the member with the rows; empty: the answer is the row
	with   string // only rows in which this member is set
	well   item   // the row of a service without one
	order  string // the time by which the rows of all services are sorted
	newest bool   // by it, the newest first
	// columns are "NAME member form" each. A _ of the name is a blank. Only -o wide shows a name with a +, and only
	// --payload or --recipient one with a ?.
	columns  string
	personal bool
}

func (v view) table(found serviceAnswers) table {
	rows := []item{}
	for _, a := range found {
		parts := []item{a.Value}
		if v.of != "" {
			parts = a.Value.items(v.of)
		}
		if len(parts) == 0 && v.well != nil {
			parts = []item{maps.Clone(v.well)}
			parts[0]["service"] = a.Service
		}
		rows = append(rows, parts...)
	}
	rows = slices.DeleteFunc(rows, func(i item) bool { return v.with != "" && !i.isSet(v.with) })
	slices.SortStableFunc(rows, func(a, b item) int {
		if v.newest {
			a, b = b, a
		}
		return a.time(v.order).Compare(b.time(v.order))
	})
	return table{v, rows}
}

// table cuts no value and uses no colours. A column of free text comes last.
type table struct {
	view
	rows []item
}

// lines has the headings first.
func (t table) lines(wide bool) [][]string {
	lines := make([][]string, len(t.rows)+1)
	for column := range strings.SplitSeq(t.columns, ",") {
		parts := append(strings.Fields(column), "")
		name, isWide := strings.CutSuffix(parts[0], "+")
		name, isPersonal := strings.CutSuffix(name, "?")
		if isWide && !wide || isPersonal && !t.personal {
			continue
		}
		if wide && name == "AGE" {
			name = "TIME"
		}
		lines[0] = append(lines[0], strings.ReplaceAll(name, "_", " "))
		for i, row := range t.rows {
			lines[i+1] = append(lines[i+1], cmp.Or(printable(show(row, parts[1], parts[2], wide)), "-"))
		}
	}
	return lines
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
