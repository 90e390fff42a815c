package deadletter_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
)

// An edit changes what it names and leaves the rest as it is by then, an earlier edit's work included.
func TestEditsAddUp(t *testing.T) {
	t.Parallel()
	s, _ := open(t, letter(1))
	letters, err := s.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	id := letters[0].ID
	header := func(name, value string) deadletter.Header { return deadletter.Header{Name: name, Value: []byte(value)} }
	edited := func(e operate.Edit, c audit.Change) *deadletter.Edited {
		l, err := s.Edit(t.Context(), id, e, c)
		require.NoError(t, err)
		return l.Edited
	}
	require.Nil(t, edited(operate.Edit{Payload: []byte("p")}, audit.Change{By: "ana", DryRun: true}))

	set := edited(operate.Edit{Set: []deadletter.Header{header("x", "1"), header("y", "2")}}, by)
	require.Equal(t, []deadletter.Header{header("x", "1"), header("y", "2")}, set.Headers, "one in the place of both")
	require.Equal(t, letters[0].Payload, set.Payload)
	require.Equal(t, "ana", set.By)
	both := edited(operate.Edit{Payload: []byte("p")}, audit.Change{By: "ben"})
	require.Equal(t, set.Headers, both.Headers, "the headers of the edit before")
	require.Equal(t, "ben", both.By)
	again := edited(operate.Edit{Set: []deadletter.Header{header("x", "3")}}, by)
	require.Equal(t, []deadletter.Header{header("y", "2"), header("x", "3")}, again.Headers)
	require.Equal(t, "p", string(again.Payload))

	l, history, err := s.Get(t.Context(), id, true)
	require.NoError(t, err)
	require.Equal(t, letters[0].Payload, l.Payload, "what came stays")
	require.Len(t, history, 3, "a dry run leaves no trace")
	for want, e := range map[string]operate.Edit{
		operate.CodeNothingToEdit:  {},
		operate.CodeInvalidHeaders: {Set: []deadletter.Header{header("", "x")}},
	} {
		_, err := s.Edit(t.Context(), id, e, by)
		require.Equal(t, want, code(err))
	}
	_, err = s.Edit(t.Context(), id+1, operate.Edit{Payload: []byte{}}, by)
	require.Equal(t, operate.CodeNotFound, code(err))
	_, err = s.Edit(t.Context(), id, operate.Edit{Payload: []byte{}}, audit.Change{})
	require.ErrorIs(t, err, audit.ErrIncomplete)
}

// An export of any size and limit is the dead letters that the filter picks, once each, in the order of their ids.
func TestExportsOfAnySize(t *testing.T) {
	t.Parallel()
	s, pool := open(t, letter(0))
	fileMany(t, pool, "many", 400)
	for limit, want := range map[int]int{0: 400, 1: 1, 199: 199, 200: 200, 201: 201, 400: 400, 401: 400} {
		var out bytes.Buffer
		n, err := s.Export(t.Context(), operate.Filter{Consumer: "many", Limit: limit}, &out)
		require.NoError(t, err)
		require.Equal(t, want, n, limit)
		require.Equal(t, want, strings.Count(out.String(), "\n"))
		require.Equal(t, 1, strings.Count(out.String(), `"e-1"`))
	}
	n, err := s.Export(t.Context(), operate.Filter{Consumer: "many"}, broken{})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Zero(t, n, "what was not written is not counted")
	_, err = s.Export(t.Context(), operate.Filter{Limit: -1}, io.Discard)
	require.Equal(t, operate.CodeInvalidFilter, code(err))
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// What was filed before an import breaks off stays filed, is counted, and is left alone by the next one.
func TestAnImportThatBreaksOff(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	lost := errors.New("lost")
	var progress []int64
	change := audit.Change{By: "ana", Progress: func(changed int64) { progress = append(progress, changed) }}
	first, second := valid("event_id", `"e1"`), valid("event_id", `"e2"`)
	result, err := s.Import(t.Context(), io.MultiReader(strings.NewReader(first+"\n"), iotest.ErrReader(lost)), change)
	require.ErrorIs(t, err, lost)
	require.Equal(t, audit.Result{Count: 1}, result)
	result, err = s.Import(t.Context(), strings.NewReader(first+"\n"+second), change)
	require.NoError(t, err)
	require.Equal(t, audit.Result{Count: 1}, result)
	require.Equal(t, []int64{1, 1}, progress, "only what was filed is progress")
	_, err = s.Import(t.Context(), strings.NewReader(valid("event_id", `"e3"`)), audit.Change{})
	require.ErrorIs(t, err, audit.ErrIncomplete)
}

func TestWhatCannotBeDiscarded(t *testing.T) {
	t.Parallel()
	s, _ := open(t, numbered(3)...)
	_, err := s.Discard(t.Context(), operate.Filter{Key: "k0", State: deadletter.Replayed}, by)
	require.Equal(t, operate.CodeNotWaiting, code(err))
	_, err = s.Discard(t.Context(), operate.Filter{Key: "k0", After: -1}, by)
	require.Equal(t, operate.CodeInvalidFilter, code(err))
	_, err = s.Groups(t.Context(), operate.Filter{Limit: -1})
	require.Equal(t, operate.CodeInvalidFilter, code(err))
	for name, f := range map[string]operate.Filter{
		"limit": {Limit: 1}, "state": {State: deadletter.Waiting}, "page": {After: 1},
	} {
		_, err := s.Discard(t.Context(), f, by)
		require.Equal(t, operate.CodeMissingFilter, code(err), "%s: that is still everything", name)
	}
	for name, f := range map[string]operate.Filter{
		"key": {Key: "none"}, "id": {IDs: []int64{99}}, "consumer": {Consumer: "none"}, "type": {Type: "none"},
		"event": {EventID: "none"}, "code": {Code: "none"}, "error": {Error: "none"},
		"from": {Since: time.Now().Add(time.Hour)}, "to": {Until: time.Unix(0, 0)},
	} {
		result, err := s.Discard(t.Context(), f, by)
		require.NoError(t, err, name)
		require.Equal(t, audit.Result{}, result, name)
	}
}
