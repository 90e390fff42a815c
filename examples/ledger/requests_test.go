package ledger

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	content, err := os.ReadFile("requests.http")
	require.NoError(t, err)
	file, err := testkit.ParseHTTPFile(string(content))
	require.NoError(t, err)
	values := map[string]string{"ledger": ""}
	for _, request := range file.Requests {
		status, known := want[request.Name]
		require.True(t, known, "request %q is new: what should it answer?", request.Name)
		delete(want, request.Name)
		if request.Name == "balance" {
			c.deliver(t, b.published(t, account.ID(values["account_id"]))...)
		}
		var headers []string
		for name := range request.Header {
			headers = append(headers, name, request.Header.Get(name))
		}
		path := file.Fill(request.Target, values)
		require.True(t, strings.HasPrefix(path, "/v1/"), path)
		a := b.do(t, request.Method, path, file.Fill(request.Body, values), headers...)
		require.Equal(t, status, a.Status, "%s: %s", request.Name, a.Body)
		if request.Name == "open" {
			values["account_id"] = a.JSON(t)["account_id"].(string)
		}
	}
	require.Empty(t, want, "requests that are gone from the file")
}
