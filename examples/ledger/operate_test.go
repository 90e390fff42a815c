package ledger

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/verify"
)

func TestAWrongBalanceIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, events := b.funded(t, 5, 7)
	newConsumer(t, b.pool).deliver(t, events...)
	check := func() (found []verify.Finding) {
		require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
			found, err = checkBalances(t.Context(), tx)
			return err
		}))
		return found
	}
	require.Empty(t, check())
	_, err := b.pool.Exec(t.Context(), `update account_balance set balance = 13`)
	require.NoError(t, err)
	require.Equal(t, []verify.Finding{{
		Key: string(id), Version: 3, Detail: "the balance is not that of the account at the same version",
	}}, check())
	_, err = b.pool.Exec(t.Context(), `update account_balance set version = 2`)
	require.NoError(t, err)
	require.Equal(t, []verify.Finding{{
		Key: string(id), Version: 2, Detail: "the row in account_balance is at version 2, its events at 3",
	}}, check())
}
