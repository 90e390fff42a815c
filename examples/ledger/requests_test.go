package ledger

import (
	"net/http"
	"testing"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/test/testkit"
)

// requests.http promises that it works from top to bottom.
func TestTheRequestsThatPeopleTry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newConsumer(t, b.pool)
	want := map[string]int{
		"open": http.StatusCreated, "credit": http.StatusOK, "debit": http.StatusOK, "balance": http.StatusOK,
		"unseen": http.StatusBadRequest, "tooMuch": http.StatusUnprocessableEntity,
	}
	values := map[string]string{"ledger": ""}
	testkit.PlayHTTPFile(t, "requests.http", values, want, func(r testkit.HTTPFileRequest) int {
		if r.Name == "balance" {
			c.deliver(t, b.published(t, account.ID(values["account_id"]))...)
		}
		a := b.do(t, r.Method, r.Target, r.Body, r.Headers()...)
		if r.Name == "open" {
			values["account_id"] = a.JSON(t)["account_id"].(string)
		}
		return a.Status
	})
}
