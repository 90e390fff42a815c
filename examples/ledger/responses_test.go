package ledger

import (
	"context"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestEveryDeclaredResponseIsGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, events := b.funded(t, 5)
	newConsumer(t, b.pool).deliver(t, events...)
	const accounts, account = "/v1/accounts", "/v1/accounts/{id}"
	mine, nobodys := accounts+"/"+string(id), accounts+"/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	const one = `{"amount":1,"currency":"EUR","expected_version":2}`

	b.holdKey(t, "open", "held")
	asks := map[string]testkit.Ask{
		"POST " + accounts + " 201": b.Ask(accounts, `{"currency":"EUR"}`),
		"POST " + accounts + " 400": b.Ask(accounts, `{}`),
		"POST " + accounts + " 409": b.Ask(accounts, `{"currency":"EUR"}`, "Idempotency-Key", "held"),
		"POST " + accounts + " 422": b.Ask(accounts, `{"currency":"XAU"}`),
	}
	for _, way := range []string{"/credits", "/debits"} {
		fresh, _ := b.funded(t, 5)
		maps.Copy(asks, map[string]testkit.Ask{
			"POST " + account + way + " 200": b.Ask(accounts+"/"+string(fresh)+way, one),
			"POST " + account + way + " 400": b.Ask(mine+way, `{}`),
			"POST " + account + way + " 404": b.Ask(nobodys+way, one),
			"POST " + account + way + " 409": b.Ask(mine+way, `{"amount":1,"currency":"EUR","expected_version":1}`),
			"POST " + account + way + " 422": b.Ask(mine+way, `{"amount":0,"currency":"EUR","expected_version":2}`),
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		maps.Copy(asks, map[string]testkit.Ask{
			method + " " + account + " 200": b.Ask(mine, ""),
			method + " " + account + " 304": b.Ask(mine, "", "If-None-Match", `"2"`),
			method + " " + account + " 400": b.Ask(accounts+"/42", ""),
			method + " " + account + " 404": b.Ask(nobodys, ""),
		})
	}
	broken := setup(t)
	_, err := broken.pool.Exec(t.Context(), `drop table account, account_balance cascade`)
	require.NoError(t, err)
	testkit.FaultyAPI{
		Healthy: b.APIClient, Broken: broken.APIClient, Away: setupOn(t, pgtest.Unreachable(t)).APIClient,
		Late: testkit.ServeAPILate(t, b.handler, b.Document),
	}.Add(t, asks, map[string]testkit.Ask{
		"POST " + accounts:             {Path: accounts, Body: `{"currency":"EUR"}`},
		"POST " + account + "/credits": {Path: mine + "/credits", Body: one},
		"POST " + account + "/debits":  {Path: mine + "/debits", Body: one},
		"GET " + account:               {Path: mine},
		"HEAD " + account:              {Path: mine},
	})
	b.Document.RequireEach(t, asks)
}

// holdKey makes another request work under the key until the test ends.
func (b *bundle) holdKey(t *testing.T, scope, key string) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) })
	_, err = tx.Exec(t.Context(), command.LockKey, scope, key)
	require.NoError(t, err)
}

func TestTheDocumentHasEachCode(t *testing.T) {
	t.Parallel()
	declared, err := document()
	require.NoError(t, err)
	for code, status := range statuses {
		require.Equal(t, status, declared.Statuses[string(code)], code)
	}
}
