package retention_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
)

func TestStats(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash)
		select 'c', 'e' || n, '1970-01-01', 't.v1', '\x01' from generate_series(1, 4) n`)
	b.Exec(t, `analyze public.inbox_foreign`)
	stats, err := retention.ReadStats(t.Context(), b.Pool)
	require.NoError(t, err)
	require.EqualValues(t, 4, stats.Remembered)
	require.Equal(t, 2000, stats.RemembersFrom.UTC().Year(), "as a new installation has it")
}
