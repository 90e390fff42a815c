package deadletter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
)

// A line that cannot be imported is reported by its number, in a dry run too, and the lines around it are stored.
func TestOneBadLineAmongGoodOnes(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 300) + `"`
	huge := `"` + strings.Repeat("x", 20_000) + `"`
	values := map[string][]string{
		"edited": {
			`{"headers":[],"payload":"","by":"a","at":"0001-01-01T00:00:00Z"}`, `{}`, `{"by":"\u0000","at":null}`, `7`,
		},
	}
	for _, number := range []string{"attempts", "replays", "partition"} {
		values[number] = []string{"2147483648", "4294967297", "-1", "1.5", "1e3", "1e400", `"1"`, "99999999999999999999"}
	}
	values["version"] = []string{"9223372036854775808", "-1", "0.5", "true"}
	values["offset"] = []string{"9223372036854775808", "1e30", `"1"`}
	for _, moment := range []string{"first_failed_at", "failed_at"} {
		values[moment] = []string{
			`"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"10000-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`,
			`"2026-02-30T00:00:00Z"`, `"2026-01-01"`, `""`, "0", "null",
		}
	}
	values["settled_at"] = []string{`"never"`, "1"}
	values["record_time"] = []string{`"never"`, "1"}
	for _, text := range []string{"consumer", "event_id", "topic", "class", "code", "group", "outcome"} {
		values[text] = []string{long, huge, `"\u0000"`, `"a\u0000b"`, "7", `"\ud800"`}
	}
	for _, bytes := range []string{"key", "payload"} {
		values[bytes] = []string{`"not base64!"`, "1", "{}"}
	}
	values["headers"] = []string{`[{"name":1}]`, `{}`, `"x"`, `[[]]`}
	values["state"] = []string{`""`, "null", `"lost"`, "1"}
	n := 0
	for member, bad := range values {
		s, _ := open(t)
		var lines []string
		for i, value := range bad {
			lines = append(lines, valid("event_id", fmt.Sprintf(`"good-%d"`, i)), valid(member, value))
			n++
		}
		text := strings.Join(lines, "\n")
		dry, err := s.Import(t.Context(), strings.NewReader(text), audit.Change{By: "ben", DryRun: true})
		require.NoError(t, err, member)
		result, err := s.Import(t.Context(), strings.NewReader(text), by)
		require.NoError(t, err, member)
		require.EqualValues(t, len(bad), result.Count, "%s: %v", member, result.Errors)
		require.Len(t, result.Errors, len(bad), member)
		require.EqualValues(t, len(bad), result.Failed)
		require.Equal(t, dry.Errors, result.Errors, "a dry run finds the same")
		for i, wrong := range result.Errors {
			require.Equal(t, fmt.Sprintf("line %d", 2*i+2), wrong.Subject, member)
		}
	}
	require.Greater(t, n, 60)
}

// A line that is too long is one line: what comes after it is found.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", operate.MaxLine+1)
	var seen []string
	for line, err := range operate.Lines(strings.NewReader("a\r\n\n" + long + "\n b \n" + long)) {
		if err != nil {
			require.ErrorIs(t, err, operate.ErrLineTooLong)
			line = []byte("too long")
		}
		seen = append(seen, string(line))
	}
	require.Equal(t, []string{"a", "", "too long", "b", "too long"}, seen)

	broken := errors.New("broken")
	var last error
	for _, err := range operate.Lines(iotest.ErrReader(broken)) {
		last = err
	}
	require.ErrorIs(t, last, broken)
	for _, err := range operate.Lines(strings.NewReader("")) {
		require.Fail(t, "nothing is no line", err)
	}
}

// A file of nothing but bad lines is told of in bounded memory.
func TestErrorsOfAnImportAreCounted(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	result, err := s.Import(t.Context(), strings.NewReader(strings.Repeat("x\n", 5000)), by)
	require.NoError(t, err)
	require.EqualValues(t, 5000, result.Failed)
	require.Len(t, result.Errors, 100)
}
