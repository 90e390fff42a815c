package inbox_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func TestApplyRunsTheHandlerOfTheType(t *testing.T) {
	t.Parallel()
	mux := inbox.NewMux()
	var got []string
	inbox.Handle(mux, testEvent, func(_ context.Context, _ pgx.Tx, e event.Event, data testData) error {
		got = append(got, e.ID, data.Value)
		return nil
	})
	e := event.Event{ID: "1", Type: testType, Data: []byte(`{"value":"x"}`)}
	require.NoError(t, mux.Apply(t.Context(), nil, e))
	require.Equal(t, []string{"1", "x"}, got)

	e.Data = []byte(`{"value":1}`)
	require.ErrorContains(t, mux.Apply(t.Context(), nil, e), "decode "+testType)
	e.Type = "another"
	require.ErrorContains(t, mux.Apply(t.Context(), nil, e), "no handler for another")
}

func TestAHandlerOfAnotherEventsStructDoesNotCompile(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "./testdata/mismatch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as most builds, so the compiled packages are there
	said, err := build.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "data placed")
	require.Contains(t, string(said), "shipped")
	require.Equal(t, 1, strings.Count(string(said), "handler.go"), "for that reason alone: %s", said)
}
