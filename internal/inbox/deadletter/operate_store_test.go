package deadletter_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
)

func numbered(n int) []deadletter.Letter {
	letters := make([]deadletter.Letter, n)
	for i := range letters {
		letters[i] = letter(i)
	}
	return letters
}

func code(err error) string {
	if refused, is := errors.AsType[*operate.Error](err); is {
		return refused.Code
	}
	return fmt.Sprint(err)
}

// What was filed is read back byte for byte, page by page, by every filter.
func TestListing(t *testing.T) {
	t.Parallel()
	letters := numbered(5)
	letters[4].Code, letters[4].EventType = "empty_value", "other"
	s, _ := open(t, letters...)
	all, err := s.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	require.Len(t, all, 5)
	for i, l := range all {
		want := letters[i]
		want.ID, want.State, want.FailedAt = l.ID, deadletter.Waiting, l.FailedAt
		require.Equal(t, want, l)
	}
	for name, f := range map[string]operate.Filter{
		"page":  {Limit: 1, After: all[2].ID},
		"id":    {IDs: []int64{all[3].ID}},
		"event": {EventID: "event-3"},
		"error": {Error: "boom 3"},
		"all":   {Consumer: "test", Key: "k0", Code: "handler_failed", State: deadletter.Waiting, After: all[0].ID},
	} {
		got, err := s.List(t.Context(), f)
		require.NoError(t, err, name)
		require.Equal(t, all[3:4], got, name)
	}
	for _, f := range []operate.Filter{
		{Consumer: "x"}, {State: deadletter.Replayed}, {Until: all[0].FailedAt}, {Since: time.Now().Add(time.Hour)},
	} {
		none, err := s.List(t.Context(), f)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	groups, err := s.Groups(t.Context(), operate.Filter{Consumer: "test"})
	require.NoError(t, err)
	require.Len(t, groups, 2)
	require.Equal(t, []any{int64(4), int64(3), "Boom 3", all[3].ID},
		[]any{groups[0].Count, groups[0].Keys, groups[0].Error, groups[0].Example})
	require.Equal(t, "other", groups[1].Type)
	_, err = s.List(t.Context(), operate.Filter{State: "lost"})
	require.Equal(t, operate.CodeInvalidFilter, code(err))
	_, _, err = s.Get(t.Context(), 99, false)
	require.Equal(t, operate.CodeNotFound, code(err))
}

func TestDiscarding(t *testing.T) {
	t.Parallel()
	s, _ := open(t, numbered(5)...)
	f := operate.Filter{Key: "k0"}
	dry, err := s.Discard(t.Context(), f, audit.Change{By: "ana", DryRun: true})
	require.NoError(t, err)
	require.Equal(t, audit.Result{DryRun: true, Count: 2}, dry)
	done, err := s.Discard(t.Context(), f, by)
	require.NoError(t, err)
	require.Equal(t, audit.Result{Count: 2}, done)
	again, err := s.Discard(t.Context(), f, by)
	require.NoError(t, err)
	require.Equal(t, audit.Result{}, again)
	discarded, err := s.List(t.Context(), operate.Filter{State: deadletter.Discarded})
	require.NoError(t, err)
	require.Len(t, discarded, 2)
	_, history, err := s.Get(t.Context(), discarded[0].ID, false)
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, []string{"ana", "discard", "test", "waiting", "discarded"},
		[]string{history[0].By, history[0].Verb, history[0].Reason, history[0].Before, history[0].After})
	_, err = s.Edit(t.Context(), discarded[0].ID, operate.Edit{Payload: []byte{}}, by)
	require.Equal(t, operate.CodeNotWaiting, code(err))

	_, err = s.Discard(t.Context(), operate.Filter{}, by)
	require.Equal(t, operate.CodeMissingFilter, code(err))
	_, err = s.Discard(t.Context(), operate.Filter{Consumer: "test"}, audit.Change{})
	require.ErrorIs(t, err, audit.ErrIncomplete)
	one, err := s.Discard(t.Context(), operate.Filter{Consumer: "test", Limit: 1}, by)
	require.NoError(t, err)
	require.EqualValues(t, 1, one.Count)
}

// An export is imported into another database unchanged, each dead letter once, even when single lines fail.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	s, _ := open(t, numbered(3)...)
	all, err := s.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	edited := []byte("mended")
	_, err = s.Edit(t.Context(), all[0].ID, operate.Edit{Payload: edited}, by)
	require.NoError(t, err)
	_, err = s.Discard(t.Context(), operate.Filter{IDs: []int64{all[1].ID}}, by)
	require.NoError(t, err)
	var file bytes.Buffer
	n, err := s.Export(t.Context(), operate.Filter{Consumer: "test"}, &file)
	require.NoError(t, err)
	require.Equal(t, 3, n)

	there, pool := open(t)
	lines := "\nnonsense\n" + strings.Replace(file.String(), "}\n", "}\n{\"format\":\"other/9\"}\n", 1)
	dry, err := there.Import(t.Context(), strings.NewReader(lines), audit.Change{By: "ben", DryRun: true})
	require.NoError(t, err)
	require.EqualValues(t, 3, dry.Count)
	result, err := there.Import(t.Context(), strings.NewReader(lines), audit.Change{By: "ben"})
	require.NoError(t, err)
	require.Equal(t, dry.Errors, result.Errors)
	require.Len(t, result.Errors, 2)
	require.Equal(t, []any{"line 2", "invalid_json", "line 4", "unknown_format"}, []any{
		result.Errors[0].Subject, result.Errors[0].Code, result.Errors[1].Subject, result.Errors[1].Code,
	})
	require.EqualValues(t, 3, result.Count)
	again, err := there.Import(t.Context(), &file, audit.Change{By: "ben"})
	require.NoError(t, err)
	require.Zero(t, again.Count)

	want, err := s.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	got, err := there.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i := range got {
		want[i].ID, want[i].Remembered = got[i].ID, false // only the inbox it was written with can answer for it
	}
	require.Equal(t, want, got)
	var audited int
	err = pool.QueryRow(t.Context(), `select count(*) from operator_action where verb = 'import'`).Scan(&audited)
	require.NoError(t, err)
	require.Equal(t, 3, audited)
}

func TestLinesThatCannotBeImported(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for want, line := range map[string]string{
		operate.LineIncomplete:   `{"format":"twinbox.dead_letter/1","state":"waiting"}`,
		operate.LineInvalidState: valid("state", `"lost"`),
		operate.LineRefused:      valid("event_id", `"`+strings.Repeat("x", 300)+`"`),
		operate.LineInvalid:      valid("payload", `"not base64!"`),
		operate.LineTooLong:      strings.Repeat("x", 9<<20),
	} {
		result, err := s.Import(t.Context(), strings.NewReader(line), by)
		require.NoError(t, err)
		require.Len(t, result.Errors, 1, want)
		require.Equal(t, want, result.Errors[0].Code, result.Errors[0].Detail)
		require.Equal(t, "line 1", result.Errors[0].Subject)
	}
	nameless, err := s.Import(t.Context(), strings.NewReader(valid("headers", `[{"value":""}]`)), by)
	require.NoError(t, err)
	require.Equal(t, operate.LineInvalid, nameless.Errors[0].Code)
	ok, err := s.Import(t.Context(), strings.NewReader(valid("code", `"c"`)), by)
	require.NoError(t, err)
	require.Equal(t, audit.Result{Count: 1}, ok)
}

// A key that no event can have is held by nothing.
func TestAnImportedLetterHoldsTheKeyOfAnEventAlone(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var lines []string
	for i, key := range []string{"a", "", "\xff", strings.Repeat("x", 1025)} {
		l := strings.TrimSuffix(valid("event_id", fmt.Sprintf(`"e%d"`, i)), "}")
		lines = append(lines, fmt.Sprintf(`%s,"holds":true,"key":%q}`, l, base64.StdEncoding.EncodeToString([]byte(key))))
	}
	result, err := s.Import(t.Context(), strings.NewReader(strings.Join(lines, "\n")), by)
	require.NoError(t, err)
	require.EqualValues(t, len(lines), result.Count, result.Errors)
	letters, err := s.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	for i, l := range letters {
		require.Equal(t, i == 0, l.Holds, "%q", l.Key)
	}
}

// valid is a line that could be imported, but for one field.
func valid(field, value string) string {
	fields := map[string]string{
		"consumer": `"test"`, "event_id": `"e"`, "topic": `"t"`, "class": `"unknown"`, "code": `"c"`, "state": `"waiting"`,
		"first_failed_at": `"2026-01-01T00:00:00Z"`, "failed_at": `"2026-01-01T00:00:00Z"`,
		"format": `"twinbox.dead_letter/1"`,
	}
	fields[field] = value
	parts := []string{}
	for name, v := range fields {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// fileMany files dead letters of a consumer, e-1 and so on.
func fileMany(t *testing.T, pool *pgxpool.Pool, consumer string, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `insert into dead_letter (consumer, event_id, event_type, key, headers, payload,
		topic, partition, record_offset, class, code, error, attempts, first_failed_at, holds)
		select $1, 'e-' || n, 't', convert_to('k-' || n, 'UTF8'), '[]', '', 't', 0, n, 'unknown', 'c', 'x', 1, now(), true
		from generate_series(1, $2) n`, consumer, n)
	require.NoError(t, err)
}

// Tens of thousands of dead letters are listed page by page, each page at the same cost: by the index, not by an
// offset.
func TestManyLetters(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	fileMany(t, pool, "test", 20_000)
	page, err := s.List(t.Context(), operate.Filter{After: 19_000, Limit: 500})
	require.NoError(t, err)
	require.Equal(t, []int64{19_001, 19_500}, []int64{page[0].ID, page[499].ID})
	var progress []int64
	change := audit.Change{By: "ana", Progress: func(changed int64) { progress = append(progress, changed) }}
	result, err := s.Discard(t.Context(), operate.Filter{Consumer: "test", Limit: 1200}, change)
	require.NoError(t, err)
	require.Equal(t, []int64{500, 1000, 1200}, progress, "a chunk is a transaction, and is counted once it is through")
	require.Equal(t, audit.Result{Count: 1200}, result)
	for id, want := range map[int64]int{1200: 1, 1201: 0} {
		_, history, err := s.Get(t.Context(), id, false)
		require.NoError(t, err)
		require.Len(t, history, want, "what was done to %d is found by its id", id)
	}
}
