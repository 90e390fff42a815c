package contract

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	checker, err := Load()
	require.NoError(t, err)
	for _, d := range All() {
		name := path.Base(d.DataSchema)
		example, err := os.ReadFile("events/examples/" + name)
		require.NoError(t, err)
		var document map[string]any
		require.NoError(t, json.Unmarshal(example, &document))
		key, is := document["order_id"].(string)
		if d.Type == PaymentCompleted.Type {
			key, is = document["payment_id"].(string)
		}
		require.True(t, is, name)
		e := event.Event{
			Type: d.Type, Source: d.Source, Key: key, Version: 1, Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
			Data: example,
		}
		require.NoError(t, checker.Validate(e), name)
		payload, err := d.Payload(e)
		require.NoError(t, err)
		again, err := json.Marshal(payload)
		require.NoError(t, err)
		require.JSONEq(t, string(example), string(again), name)
		require.Implements(t, (*event.Ruled)(nil), payload)
		e.Key = "another"
		require.ErrorContains(t, checker.Validate(e), "another aggregate", name)
	}
	files, err := fs.Glob(files, "events/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(All()), "no schema without an event")
}

func TestIDsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	require.True(t, ValidID("01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"))
	for _, id := range []string{"", "01980A5C-52D4-7C3B-9A44-0D6F3F1F2A10", "{01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10}"} {
		require.False(t, ValidID(id))
		require.Error(t, Payment{PaymentID: "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10", OrderID: id}.Check())
	}
}
