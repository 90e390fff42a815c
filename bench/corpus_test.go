package main

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestEventIDHoldsTheNumber(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 499, 5_000_000} {
		id := eventID(n)
		parsed, err := uuid.Parse(id)
		require.NoError(t, err)
		require.Equal(t, uuid.Version(7), parsed.Version())
		require.Equal(t, uuid.RFC4122, parsed.Variant())
		got, err := numberOf(id)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	for _, id := range []string{"", "x", "not-a-uuid-but-36-characters-long..."} {
		_, err := numberOf(id)
		require.ErrorIs(t, err, errForeignID)
	}
}

func TestPayloadIsJSONOfItsSize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 99_999, 5_000_000} {
		require.Len(t, payload(n), payloadBytes)
		require.True(t, json.Valid(payload(n)))
	}
}

func TestVariantsCarryTheSameEvent(t *testing.T) {
	t.Parallel()
	c := corpus{topic: "t", keys: 10}
	m, e := c.message(23), c.event(23)
	require.Equal(t, e.ID, m.UUID)
	require.Equal(t, e.Data, []byte(m.Payload))
	require.Equal(t, e.Key, m.Metadata[event.KeyMetadata])
	require.Equal(t, "3", m.Metadata[event.HeaderVersion], "the key's third event")
	require.NotEqual(t, c.key(3), corpus{topic: "t"}.key(13), "signups have a key each")
}

func TestEnvelopesAreTheEventsOneByOne(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{0, 3} {
		c := corpus{topic: "t", keys: keys}
		for i, e := range c.envelopes(10) {
			require.Equal(t, c.envelope(i), *e)
		}
	}
}
