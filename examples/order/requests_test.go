package order_test

import (
	"net/http"
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
	values := map[string]string{"order": "order", "payments": "payments"}
	apis := map[string]*testkit.APIClient{"order": w.orders, "payments": w.payments}
	testkit.PlayHTTPFile(t, "requests.http", values, want, func(r testkit.HTTPFileRequest) int {
		at, path, _ := strings.Cut(r.Target, "/")
		a := apis[at].Do(t, r.Method, "/"+path, r.Body, r.Headers()...)
		switch r.Name {
		case "place":
			values["order_id"] = a.JSON(t)["order_id"].(string)
		case "second":
			values["second_id"] = a.JSON(t)["order_id"].(string)
		case "pay":
			w.Settle()
		case "paid":
			require.Equal(t, "paid", a.JSON(t)["status"])
		}
		return a.Status
	})
}
