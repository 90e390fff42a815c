package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
)

// A record that is no event is published unchanged, with any key, and events cannot pass for one.
func TestRecordsThatAreNoEvents(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	tx := begin(t, pool)
	wire := cloudevent.Wire{
		Key: []byte{0xff, 0}, Headers: []cloudevent.Header{{Name: "x", Value: []byte{0xfe}}, {Name: "x", Value: nil}},
	}
	require.NoError(t, o.AddRecord(t.Context(), tx, testTopic, wire, nil))
	require.NoError(t, o.AddRecord(t.Context(), tx, testTopic, cloudevent.Wire{Key: []byte("k")}, []byte("v")))
	require.NoError(t, o.AddRecord(t.Context(), tx, testTopic, cloudevent.Wire{}, []byte("v")))
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, int64(3), number(t, pool, `select count(*) from outbox where event_type = 'record'`))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where key = 'k' and payload = 'v'`))
	var encoded string
	require.NoError(t, pool.QueryRow(t.Context(),
		`select headers ->> 'record_wire' from outbox order by position limit 1`).Scan(&encoded))
	read, ok := cloudevent.ParseWire(encoded)
	require.True(t, ok)
	require.Equal(t, wire, read)

	forged := event("k")
	forged.Extensions = map[string]string{cloudevent.RecordMetadata: encoded}
	tx = begin(t, pool)
	_, err := o.Add(t.Context(), tx, forged)
	require.ErrorContains(t, err, "attribute of the event")
	require.ErrorContains(t, o.AddRecord(t.Context(), tx, "no topic", wire, nil), CodeInvalidEvent)
	require.ErrorContains(t, o.AddRecord(t.Context(), tx, "", wire, nil), CodeInvalidEvent)
	require.ErrorContains(t, o.AddRecord(t.Context(), tx, testTopic, wire, make([]byte, 1<<20)), CodeTooLarge)
}
