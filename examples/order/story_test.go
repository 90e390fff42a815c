package order_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/examples/payments"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

type world struct {
	*servicetest.System
	orders, payments *testkit.APIClient
	db               *pgxpool.Pool
	box              *mailbox.Mailbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	box, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	w := &world{box: box, System: servicetest.Start(t,
		servicetest.Part{Described: payments.Service.Describe()},
		servicetest.Part{
			Described: order.Service.Describe(), Environ: []string{"SMTP_ADDR=" + box.SMTPAddr(), "SMTP_TLS=none"},
		},
	)}
	w.db = w.Pool("order")
	w.orders = &testkit.APIClient{URL: "http://" + w.API("order"), Document: document(t, "openapi.yaml")}
	w.payments = &testkit.APIClient{
		URL: "http://" + w.API("payments"), Document: document(t, "../payments/openapi.yaml"),
	}
	return w
}

func document(t *testing.T, file string) *testkit.OpenAPI {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := testkit.ParseOpenAPI(content)
	require.NoError(t, err)
	return parsed
}

const placing = `{"email":"ada@example.org","amount":1999,"currency":"EUR"}`

func (w *world) place(t *testing.T) string {
	t.Helper()
	a := w.orders.Do(t, http.MethodPost, "/v1/orders", placing)
	require.Equal(t, http.StatusCreated, a.Status)
	return a.JSON(t)["order_id"].(string)
}

func (w *world) pay(t *testing.T, id, more string) {
	t.Helper()
	a := w.payments.Do(t, http.MethodPost, "/v1/payments",
		`{"order_id":"`+id+`","amount":1999,"currency":"EUR"`+more+`}`)
	require.Equal(t, http.StatusAccepted, a.Status)
}

func (w *world) order(t *testing.T, id string) map[string]any {
	t.Helper()
	w.Settle()
	return w.orders.Do(t, http.MethodGet, "/v1/orders/"+id, "").JSON(t)
}

// One order is paid, with three events for one payment; one is not paid in time; one is cancelled before its payment
// comes.
func TestOrdersAndTheirPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, unpaid, regretted := w.place(t), w.place(t), w.place(t)
	w.pay(t, regretted, `,"after_seconds":3600`)
	a := w.orders.Do(t, http.MethodPost, "/v1/orders/"+regretted+"/cancellation", "")
	require.Equal(t, http.StatusOK, a.Status)
	w.pay(t, id, `,"times":3`)
	require.Equal(t, "paid", w.order(t, id)["status"])

	for _, late := range []*pgxpool.Pool{w.db, w.Pool("payments")} {
		pgtest.Advance(t, late, time.Hour)
	}
	require.Equal(t, "cancelled", w.order(t, unpaid)["status"])
	require.Equal(t, 3.0, w.order(t, regretted)["version"], "placed, cancelled, refund due")
	outboxtest.RequireAdded(t, w.db, contract.RefundDue, outboxtest.Key(regretted))
	mails := w.box.Messages()
	require.Len(t, mails, 1, "one receipt for four events of payments")
	require.Equal(t, []string{"ada@example.org"}, mails[0].To)
	require.Contains(t, mails[0].Text, "19.99 EUR for your order "+id)
}

func TestTheAPIsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := []string{"Idempotency-Key", "k"}
	first := w.orders.Do(t, http.MethodPost, "/v1/orders", placing, key...).JSON(t)
	again := w.orders.Do(t, http.MethodPost, "/v1/orders", placing, key...).JSON(t)
	require.Equal(t, first, again)
	id := first["order_id"].(string)
	for _, c := range []struct {
		method     string
		at         *testkit.APIClient
		path, body string
		headers    []string
		status     int
		code       string
	}{
		{"POST", w.orders, "/v1/orders", strings.Replace(placing, "1999", "5", 1), key, 422, "idempotency_key_reused"},
		{"POST", w.orders, "/v1/orders", placing, []string{"Idempotency-Key", ""}, 400, "idempotency_key_invalid"},
		{"POST", w.orders, "/v1/orders", `{`, nil, 400, "malformed_json"},
		{"POST", w.orders, "/v1/orders", strings.Replace(placing, "ada@", "Ada <ada@", 1), nil, 422, "invalid_email"},
		{"POST", w.orders, "/v1/orders", strings.Replace(placing, "1999", "0", 1), nil, 422, "invalid_amount"},
		{"POST", w.orders, "/v1/orders", strings.Replace(placing, "EUR", "euro", 1), nil, 422, "invalid_currency"},
		{"GET", w.orders, "/v1/orders/1", "", nil, 404, "order_not_found"},
		{"POST", w.orders, "/v1/orders/1/cancellation", "", nil, 404, "order_not_found"},
		{"POST", w.payments, "/v1/payments", `{"order_id":"1","amount":1,"currency":"EUR"}`, nil, 422, "invalid_order_id"},
		{
			"POST", w.payments, "/v1/payments", `{"order_id":"` + id + `","amount":1,"currency":"EUR","times":11}`, nil, 422,
			"invalid_times",
		},
	} {
		a := c.at.Do(t, c.method, c.path, c.body, c.headers...)
		require.Equal(t, []any{c.status, c.code}, []any{a.Status, a.Code(t)}, c.path)
	}
	w.pay(t, id, "")
	o := w.order(t, id)
	a := w.orders.Do(t, http.MethodPost, "/v1/orders/"+id+"/cancellation", "")
	require.Equal(t, []any{409, "order_paid"}, []any{a.Status, a.Code(t)})
	a = w.orders.Do(t, http.MethodGet, "/v1/orders/"+id, "", "If-None-Match", `"2"`)
	require.Equal(t, http.StatusNotModified, a.Status)
	require.Equal(t, 2.0, o["version"])
}

func TestKeysThatLookAlikeDoNotCollide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	placed := map[string]bool{}
	keys := []string{`"key"`, `"KEY"`, `" key"`, `"key "`, `"k ey"`, `"k%65y"`, `"k/ey"`, `"k.ey"`, `"k\"ey"`}
	for _, key := range keys {
		first := w.orders.Do(t, http.MethodPost, "/v1/orders", placing, "Idempotency-Key", key).JSON(t)
		again := w.orders.Do(t, http.MethodPost, "/v1/orders", placing, "Idempotency-Key", key).JSON(t)
		require.Equal(t, first, again, key)
		placed[first["order_id"].(string)] = true
	}
	require.Len(t, placed, len(keys))
}
