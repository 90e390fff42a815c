package account_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/examples/ledger/account"
)

const id = account.ID("01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10")

var at = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

func TestABalanceKeepsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, opened := account.Open(id, "EUR", at)
		require.NoError(rt, opened.Check())
		amounts := rapid.SampledFrom([]int64{1, 2, 1000, account.MaxAmount / 2, account.MaxAmount})
		for range 20 {
			m := account.Money{Amount: amounts.Draw(rt, "amount"), Currency: "EUR"}
			var after account.Account
			var err, invalid error
			if rapid.Bool().Draw(rt, "debit") {
				var said account.FundsDebited
				after, said, err = a.Debit(m, at)
				invalid = said.Check()
			} else {
				var said account.FundsCredited
				after, said, err = a.Credit(m, at)
				invalid = said.Check()
			}
			if err != nil {
				require.Equal(rt, a, after)
				continue
			}
			require.NoError(rt, invalid)
			require.Equal(rt, a.Version+1, after.Version)
			require.GreaterOrEqual(rt, after.Balance, int64(0))
			require.LessOrEqual(rt, after.Balance, int64(account.MaxAmount))
			a = after
		}
	})
}

func TestAnIDHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "42", "01980A5C-52D4-7C3B-9A44-0D6F3F1F2A10", "{01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10}",
		"urn:uuid:01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10", " 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10",
		"00000000-0000-0000-0000-000000000000",
	} {
		_, err := account.ParseID(text)
		require.ErrorIs(t, err, &account.Error{Code: account.CodeInvalidID}, text)
	}
	parsed, err := account.ParseID(string(id))
	require.NoError(t, err)
	require.Equal(t, id, parsed)
}
