package contract_test

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/event"
)

const id = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"

var meant = map[string]any{
	contract.AccountOpened.Type: account.Opened{
		AccountID: id, Currency: "EUR", OpenedAt: time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC),
	},
	contract.FundsCredited.Type: account.FundsCredited{
		AccountID: id, Amount: 1250, Currency: "EUR", CreditedAt: time.Date(2026, 11, 20, 9, 31, 0, 0, time.UTC),
	},
	contract.FundsDebited.Type: account.FundsDebited{
		AccountID: id, Amount: account.MaxAmount, Currency: "EUR", DebitedAt: time.Date(2026, 11, 20, 9, 32, 0, 0, time.UTC),
	},
}

// Other teams write their readers by the examples.
func TestTheExamplesAreTheEvents(t *testing.T) {
	t.Parallel()
	checker, err := contract.Load()
	require.NoError(t, err)
	for _, d := range contract.All() {
		data, err := contract.Files.ReadFile("events/examples/" + path.Base(d.DataSchema))
		require.NoError(t, err)
		e := event.Event{Type: d.Type, Source: d.Source, Key: id, Data: data}
		require.NoError(t, checker.Validate(e))
		read, err := d.Payload(e)
		require.NoError(t, err)
		require.Equal(t, meant[d.Type], read)
	}
}

func TestWhatTheLedgerWouldNotWriteIsRefused(t *testing.T) {
	t.Parallel()
	checker, err := contract.Load()
	require.NoError(t, err)
	for name, test := range map[string]struct{ amount, currency, at, code string }{
		"fits":                 {"1", `"EUR"`, "2026-11-20", ""},
		"unsupported currency": {"1", `"XAU"`, "2026-11-20", "unsupported_currency"},
		"no currency code":     {"1", `"euro"`, "2026-11-20", "schema_violation"},
		"no amount":            {"0", `"EUR"`, "2026-11-20", "schema_violation"},
		"too large an amount":  {"9007199254740992", `"EUR"`, "2026-11-20", "schema_violation"},
		"an amount as text":    {`"1"`, `"EUR"`, "2026-11-20", "schema_violation"},
		"a time of no clock":   {"1", `"EUR"`, "1970-01-01", "invalid_time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := contract.FundsCredited
			data := fmt.Appendf(nil, `{"account_id":%q,"amount":%s,"currency":%s,"credited_at":"%sT09:31:00Z"}`,
				id, test.amount, test.currency, test.at)
			err := checker.Validate(event.Event{Type: d.Type, Source: d.Source, Key: id, Data: data})
			if test.code == "" {
				require.NoError(t, err)
				return
			}
			var broken *event.ContractError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, test.code, broken.ErrorCode())
		})
	}
}
