package lease

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestReopenAndSettle(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "e1", "e2", "e3")
	for range 3 {
		c := b.claim(t)
		require.NoError(t, c.Begin(t.Context()))
		if c.EventID == "e3" {
			require.NoError(t, c.record(t.Context(), failed))
			continue
		}
		require.NoError(t, c.record(t.Context(), uncertain))
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		settled, err := Settle(t.Context(), tx, "test", []string{"e1", "e3", "e4"})
		require.NoError(t, err)
		require.Len(t, settled, 1)
		require.Equal(t, "e1", settled[0].EventID)
		return Reopen(t.Context(), tx, "test", []string{"e1", "e2", "e3"})
	}))
	require.Equal(t, Done, b.state(t, "e1"))
	require.Equal(t, Pending, b.state(t, "e2"))
	require.Equal(t, Pending, b.state(t, "e3"))
	require.Equal(t, 1, b.claim(t).Attempt)
}
