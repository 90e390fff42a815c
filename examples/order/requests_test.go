package order_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// requests.http promises that it works from top to bottom.
func TestTheRequestsThatPeopleTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := map[string]int{
		"place": http.StatusCreated, "pay": http.StatusAccepted, "paid": http.StatusOK, "tooLate": http.StatusConflict,
		"second": http.StatusCreated, "payLater": http.StatusAccepted, "cancel": http.StatusOK,
		"reused": http.StatusUnprocessableEntity,
	}
	content, err := os.ReadFile("requests.http")
	require.NoError(t, err)
	file, err := testkit.ParseHTTPFile(string(content))
	require.NoError(t, err)
	values := map[string]string{"order": "order", "payments": "payments"}
	apis := map[string]*testkit.APIClient{"order": w.orders, "payments": w.payments}
	for _, request := range file.Requests {
		status, known := want[request.Name]
		require.True(t, known, "request %q is new: what should it answer?", request.Name)
		delete(want, request.Name)
		at, path, _ := strings.Cut(file.Fill(request.Target, values), "/")
		var headers []string
		for name := range request.Header {
			headers = append(headers, name, request.Header.Get(name))
		}
		a := apis[at].Do(t, request.Method, "/"+path, file.Fill(request.Body, values), headers...)
		require.Equal(t, status, a.Status, request.Name)
		switch request.Name {
		case "place":
			values["order_id"] = a.JSON(t)["order_id"].(string)
		case "second":
			values["second_id"] = a.JSON(t)["order_id"].(string)
		case "pay":
			w.Settle()
		case "paid":
			require.Equal(t, "paid", a.JSON(t)["status"])
		}
	}
	require.Empty(t, want, "requests that are gone from the file")
}
