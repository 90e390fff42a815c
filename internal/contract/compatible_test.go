package contract_test

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

func record(t *testing.T, file string) event.Event {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	var kept struct {
		Key     string            `json:"key"`
		Headers map[string]string `json:"headers"`
		Value   json.RawMessage   `json:"value"`
	}
	require.NoError(t, json.Unmarshal(data, &kept))
	msg := message.NewMessage(kept.Headers[event.HeaderID], message.Payload(kept.Value))
	msg.Metadata = kept.Headers
	msg.Metadata[event.KeyMetadata] = kept.Key
	e, err := event.FromMessage(msg)
	require.NoError(t, err)
	return e
}

// The records in testdata never change: a change that fails here needs a new version of the event.
func TestOlderAndNewerRecordsOfTheVersionAreRead(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, d := range contract.All() {
		t.Run(d.Type, func(t *testing.T) {
			t.Parallel()
			file := path.Base(d.DataSchema)
			first := record(t, file)
			require.Equal(t, d.Type, first.Type)
			for _, e := range []event.Event{first, newer(t, first)} {
				require.NoError(t, c.Validate(e), isReleased, file)
				require.JSONEq(t, string(first.Data), string(roundTrip(t, e).Data), isReleased, file)
			}
		})
	}
}

const isReleased = "internal/contract/testdata/%s: a released record never changes; if the event was never released, " +
	"delete the file and run make generate"

func newer(t *testing.T, first event.Event) event.Event {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal(first.Data, &members))
	for name := range members {
		members[strings.ToUpper(name)] = "a member of another name"
	}
	maps.Copy(members, map[string]any{
		"added": map[string]any{"given": true, "scopes": []string{"mail"}}, "count": uint64(9223372036854775808), "none": nil,
	})
	data, err := json.Marshal(members)
	require.NoError(t, err)
	m := first.Message()
	maps.Copy(m.Metadata, message.Metadata{
		event.HeaderDataSchema: first.DataSchema + ".2", event.HeaderContentType: "application/json; charset=utf-8",
		event.HeaderTraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "ce_tenant": "eu-1",
	})
	m.Payload = data
	e, err := event.FromMessage(m)
	require.NoError(t, err)
	return e
}
