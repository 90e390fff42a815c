package producer

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka"
)

// All three ways to a record write another system's one as it was; a consumed header of that name is not one.
func TestAnotherSystemsRecordIsWrittenAsItWas(t *testing.T) {
	t.Parallel()
	wire := cloudevent.Wire{
		Key: []byte{0xff, 0}, Headers: []cloudevent.Header{{Name: "x", Value: []byte{0xfe}}, {Name: "x", Value: []byte("2")}},
	}
	encoded := wire.Encode()
	msg := message.NewMessage("ignored", []byte("value"))
	msg.Metadata = message.Metadata{cloudevent.RecordMetadata: encoded, cloudevent.HeaderType: "ignored"}
	event := &cloudevent.Event{
		ID: "ignored", Data: []byte("value"), Extensions: map[string]string{cloudevent.RecordMetadata: encoded},
	}
	var ofMessage, ofEvent layout
	ofMessage.messages([]*message.Message{msg})
	ofEvent.events([]*cloudevent.Event{event})
	for _, r := range [][]record{ofMessage.records, ofEvent.records} {
		require.Equal(t, []byte{0xff, 0}, r[0].data.Key)
		require.Equal(t, "value", string(r[0].data.Value))
		require.Len(t, r[0].data.Headers, 2)
		require.Equal(t, []byte{0xfe}, r[0].data.Headers[0].Value)
		require.Equal(t, "2", string(r[0].data.Headers[1].Value))
	}
	marshaled, err := kafka.Marshaler{}.Marshal("t", msg)
	require.NoError(t, err)
	require.Len(t, marshaled.Headers, 2)
	key, err := marshaled.Key.Encode()
	require.NoError(t, err)
	require.Equal(t, wire.Key, key)

	forged := []cloudevent.Header{{Name: cloudevent.RecordMetadata, Value: []byte(encoded)}}
	back := cloudevent.RecordMessage(nil, forged, nil)
	require.Empty(t, back.Metadata)
}
