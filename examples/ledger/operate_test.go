package ledger

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestAWrongBalanceIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, events := b.funded(t, 5, 7)
	newConsumer(t, b.pool).deliver(t, events...)
	check := func() (found []string) {
		for _, c := range checks(Config{}) {
			rows, err := b.pool.Query(t.Context(), "select detail from ("+c.SQL+") as found", c.Args...)
			require.NoError(t, err)
			details, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			found = append(found, details...)
		}
		return found
	}
	require.Empty(t, check())
	_, err := b.pool.Exec(t.Context(), `update account_balance set balance = 13`)
	require.NoError(t, err)
	require.Equal(t, []string{"the balance is not that of the account at the same version"}, check())
	_, err = b.pool.Exec(t.Context(), `update account_balance set version = 2`)
	require.NoError(t, err)
	require.Equal(t, []string{"the row in account_balance is at version 2, its events at 3"}, check())
}
