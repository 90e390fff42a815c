package producer

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event/cloudevent"
)

// An event becomes the same record as its message, for every content, beside any other events, and in a layout
// that was used before.
func TestAnEventBecomesTheRecordOfItsMessage(t *testing.T) {
	t.Parallel()
	text := rapid.SampledFrom([]string{"", "a", "/source", "com.example.happened.v1", "ключ"})
	name := rapid.SampledFrom([]string{
		cloudevent.HeaderTraceParent, cloudevent.HeaderTraceState, "a", "zebra", "ce_custom", cloudevent.HeaderID,
		cloudevent.HeaderVersion, cloudevent.HeaderDataSchema, cloudevent.HeaderSource, cloudevent.KeyMetadata,
		cloudevent.HeaderWatermillID,
	})
	events := rapid.Custom(func(t *rapid.T) *cloudevent.Event {
		return &cloudevent.Event{
			ID: text.Draw(t, "id"), Source: text.Draw(t, "source"), Type: text.Draw(t, "type"),
			Key:        text.Draw(t, "subject"),
			Time:       time.Unix(rapid.Int64Range(0, 7e9).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")),
			Version:    rapid.SampledFrom([]int64{0, 1, 1 << 62}).Draw(t, "version"),
			DataSchema: text.Draw(t, "schema"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			Extensions: rapid.MapOfN(name, text, 0, 5).Draw(t, "extensions"),
		}
	})
	var used layout
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.SliceOfN(events, 1, 5).Draw(t, "events")
		msgs := make([]*message.Message, len(batch))
		for i, e := range batch {
			msgs[i] = e.Message()
		}
		var fresh layout
		fresh.messages(msgs)
		used.reset()
		used.events(batch)
		require.Equal(t, plain(fresh.records), plain(used.records))
		used.reset()
		used.messages(msgs)
		require.Equal(t, plain(fresh.records), plain(used.records))
	})
}

// plainRecord is a record without the difference between nil and empty, which the wire does not show in a header.
type plainRecord struct {
	key     string
	size    int
	noKey   bool
	wireKey string
	value   string
	headers []string
}

func plain(records []record) []plainRecord {
	list := make([]plainRecord, len(records))
	for i, r := range records {
		p := plainRecord{
			key: r.key, size: r.size, noKey: r.data.Key == nil, wireKey: string(r.data.Key), value: string(r.data.Value),
		}
		for _, h := range r.data.Headers {
			p.headers = append(p.headers, string(h.Key)+"="+string(h.Value))
		}
		list[i] = p
	}
	return list
}
