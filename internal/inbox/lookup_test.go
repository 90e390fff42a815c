package inbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

const remember = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
values ($1, $2, '1970-01-01', 't.v1', '\x01', $3)`

func TestLookup(t *testing.T) {
	t.Parallel()
	pool := setup(t).Pool
	for consumer, metadata := range map[string]string{
		"a": `{"topic":"users","partition":3,"offset":17,"correlation_id":"c",
			"processing_time":"2026-11-21T10:00:00Z","processing_time_ms":7,"caller":{"n": 1}}`,
		"b": `{"outcome":"stale"}`, "other": `{}`,
	} {
		_, err := pool.Exec(t.Context(), remember, consumer, "e", metadata)
		require.NoError(t, err)
	}
	found, err := inbox.Lookup(t.Context(), pool, []string{"a", "b", "c"}, "e")
	require.NoError(t, err)
	require.Len(t, found, 2, "of the consumers asked for alone")
	require.Equal(t, inbox.Remembered{
		Consumer: "a", EventID: "e", EventType: "t.v1", Outcome: inbox.Applied, ProcessedAt: found[0].ProcessedAt,
		PayloadHash: []byte{1}, Topic: "users", Partition: 3, Offset: 17, Correlation: "c",
		TakenAt: found[0].TakenAt, Took: new(int64(7)),
		Metadata: json.RawMessage(`{"n": 1}`),
	}, found[0])
	require.Equal(t, "2026-11-21T10:00:00Z", found[0].TakenAt.UTC().Format(time.RFC3339))
	require.Equal(t, "e", found[1].Correlation, "a first event is its own")
	require.Nil(t, found[1].TakenAt)
	require.Nil(t, found[1].Metadata)
	require.Equal(t, inbox.Stale, found[1].Outcome, "in a row of the first edition")
	found, err = inbox.Lookup(t.Context(), pool, []string{"a"}, "unknown")
	require.NoError(t, err)
	require.Empty(t, found)
}
