package order_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/apitest"
	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/dev/waittest"
	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/examples/payments"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
)

const patience = 30 * time.Second

// world is both services, a broker and a mail server.
type world struct {
	orders, payments string // addresses of the APIs
	db               *pgxpool.Pool
	box              *mailbox.Mailbox
	documents        map[string]*apitest.Document // by the address
}

func newWorld(t *testing.T) *world {
	t.Helper()
	box, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	w := &world{box: box, db: pgtest.New(t, order.Migrations()...), documents: map[string]*apitest.Document{}}
	environ := []string{
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0], "ENVIRONMENT=" + strings.ToLower(rand.Text()),
		"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "OUTBOX_LEASE=40s", "KAFKA_PUBLISH_TIMEOUT=20s",
	}
	provider, buyer := payments.Service.Describe(), order.Service.Describe()
	first := load(t, provider, append(environ, "DATABASE_URL="+pgtest.DSN(pgtest.New(t, payments.Migrations()...))))
	second := load(t, buyer, append(environ, "DATABASE_URL="+pgtest.DSN(w.db), "SMTP_ADDR="+box.SMTPAddr(),
		"SMTP_TLS=none", "SMTP_TIMEOUT=15s", "MAIL_POLL=50ms"))
	topics := append(first.Topics(), second.Topics()...)
	require.NoError(t, admin.EnsureTopics(t.Context(), second.Client("test"), topics...))
	w.payments, w.orders = start(t, first), start(t, second)
	w.documents[w.payments], w.documents[w.orders] = document(t, "../payments/openapi.yaml"), document(t, "openapi.yaml")
	return w
}

func document(t *testing.T, file string) *apitest.Document {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := apitest.Parse(content)
	require.NoError(t, err)
	return parsed
}

func load(t *testing.T, s eventing.Described, environ []string) *eventing.Instance {
	t.Helper()
	instance, err := s.Load(environ)
	require.NoError(t, err)
	return instance
}

// start runs a service until the test ends, and returns where its API is.
func start(t *testing.T, instance *eventing.Instance) (api string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan service.Listening, 1), make(chan error, 1)
	go func() {
		ended <- instance.Run(ctx, service.Host{
			Log: slog.New(slog.DiscardHandler), Ready: func(at service.Listening) { listening <- at },
		})
	}()
	select {
	case at := <-listening:
		t.Cleanup(func() {
			stop()
			require.NoError(t, <-ended)
		})
		return at.API
	case err := <-ended:
		stop()
		require.FailNow(t, "the service did not start", "%v", err)
		return ""
	}
}

// ask sends a request and compares the answer with what the document says of it.
func (w *world) ask(t *testing.T, method, at, path, body string, more ...string) (status int, answer map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(more); i += 2 {
		request.Header.Set(more[i], more[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	w.documents[at].RequireDeclared(t, request, response, content)
	if len(bytes.TrimSpace(content)) > 0 {
		require.NoError(t, json.Unmarshal(content, &answer), string(content))
	}
	return response.StatusCode, answer
}

const placing = `{"email":"ada@example.org","amount":1999,"currency":"EUR"}`

func (w *world) place(t *testing.T) string {
	t.Helper()
	status, o := w.ask(t, http.MethodPost, w.orders, "/v1/orders", placing)
	require.Equal(t, http.StatusCreated, status)
	return o["order_id"].(string)
}

func (w *world) pay(t *testing.T, id, more string) {
	t.Helper()
	status, _ := w.ask(t, http.MethodPost, w.payments, "/v1/payments",
		`{"order_id":"`+id+`","amount":1999,"currency":"EUR"`+more+`}`)
	require.Equal(t, http.StatusAccepted, status)
}

func (w *world) await(t *testing.T, id, status string) (o map[string]any) {
	t.Helper()
	waittest.Until(t, func() bool {
		_, o = w.ask(t, http.MethodGet, w.orders, "/v1/orders/"+id, "")
		return o["status"] == status
	}, status)
	return o
}

// The whole of it, over HTTP, Kafka and SMTP: an order is paid, though the payment is told three times; one is not paid
// in time; and one is cancelled before its late payment comes.
func TestOrdersAndTheirPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, unpaid, regretted := w.place(t), w.place(t), w.place(t)
	w.pay(t, regretted, `,"after_seconds":1`)
	status, _ := w.ask(t, http.MethodPost, w.orders, "/v1/orders/"+regretted+"/cancellation", "")
	require.Equal(t, http.StatusOK, status)
	w.pay(t, id, `,"times":3`)
	w.await(t, id, "paid")

	_, err := w.db.Exec(t.Context(), `update outbox_scheduled set due_at = now() where name = $1`, "unpaid "+unpaid)
	require.NoError(t, err)
	w.place(t) // a commit makes the relay look
	w.await(t, unpaid, "cancelled")
	waittest.Until(t, func() bool {
		_, o := w.ask(t, http.MethodGet, w.orders, "/v1/orders/"+regretted, "")
		return o["version"] == 3.0 // placed, cancelled, refund due
	})
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	mails, err := w.box.Await(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"ada@example.org"}, mails[0].To)
	require.Contains(t, mails[0].Text, "19.99 EUR for your order "+id)
	waittest.Until(t, func() bool {
		var letters, told int
		require.NoError(t, w.db.QueryRow(t.Context(), `select (select count(*) from lease),
			(select count(*) from inbox where consumer = 'order.payments')`).Scan(&letters, &told))
		return letters == 1 && told == 4
	}, "four events of payments, one receipt")
	require.Len(t, w.box.Messages(), 1)
}

// What a client may get wrong, and what it may repeat.
func TestTheAPIsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := []string{"Idempotency-Key", "k"}
	_, first := w.ask(t, http.MethodPost, w.orders, "/v1/orders", placing, key...)
	_, again := w.ask(t, http.MethodPost, w.orders, "/v1/orders", placing, key...)
	require.Equal(t, first, again)
	id := first["order_id"].(string)
	for _, c := range []struct {
		method, at, path, body string
		headers                []string
		status                 int
		code                   string
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
		status, answer := w.ask(t, c.method, c.at, c.path, c.body, c.headers...)
		require.Equal(t, []any{c.status, c.code}, []any{status, answer["code"]}, c.path)
	}
	w.pay(t, id, "")
	o := w.await(t, id, "paid")
	status, answer := w.ask(t, http.MethodPost, w.orders, "/v1/orders/"+id+"/cancellation", "")
	require.Equal(t, []any{409, "order_paid"}, []any{status, answer["code"]})
	status, _ = w.ask(t, http.MethodGet, w.orders, "/v1/orders/"+id, "", "If-None-Match", `"2"`)
	require.Equal(t, http.StatusNotModified, status)
	require.Equal(t, 2.0, o["version"])
}
