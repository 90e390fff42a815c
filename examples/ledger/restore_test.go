package ledger

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// What a restore took from the write side comes back from the events.
func TestLostAccountsAreTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	b.move(t, id, "credits", 1000, "").requireState(t, 1000, 2)
	b.move(t, id, "debits", 300, `,"expected_version":2`).requireState(t, 700, 3)
	const all = `select id::text || currency || balance || ' ' || opened_at from account`
	var before, after string
	require.NoError(t, b.pool.QueryRow(t.Context(), all).Scan(&before))
	_, err := b.pool.Exec(t.Context(), `delete from account`)
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		for _, event := range b.published(t, id) {
			if err := adopt(t.Context(), tx, event); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, b.pool.QueryRow(t.Context(), all).Scan(&after))
	require.Equal(t, before, after)
	b.move(t, id, "debits", 700, `,"expected_version":3`).requireState(t, 0, 4)
}
