package order

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

type shop struct {
	pool     *pgxpool.Pool
	checker  *event.Checker
	commands *Commands
	handlers handlers
}

func newShop(t *testing.T) *shop {
	t.Helper()
	checker, err := contract.Load()
	require.NoError(t, err)
	out, err := outbox.New(outbox.Config{Validate: checker.Validate})
	require.NoError(t, err)
	pool := pgtest.New(t, Migrations()...)
	return &shop{
		pool: pool, checker: checker, handlers: handlers{out},
		commands: &Commands{
			Transaction: command.Transaction{Pool: pool, Timeout: inboxtest.WaitLimit},
			Outbox:      out, PayWithin: 15 * time.Minute, KeysFor: time.Hour,
		},
	}
}

var price = contract.Money{Amount: 1999, Currency: "EUR"}

func (s *shop) place(t *testing.T) Order {
	t.Helper()
	answer, err := s.commands.Place(t.Context(), Placing{Email: "ada@example.org", Money: price})
	require.NoError(t, err)
	var o Order
	require.NoError(t, json.Unmarshal(answer.Body, &o))
	return o
}

func newPayment(o Order, money contract.Money) contract.Payment {
	return contract.Payment{
		PaymentID: uuid.Must(uuid.NewV7()).String(), OrderID: o.ID, Money: money, CompletedAt: now(),
	}
}

func told(t *testing.T, p contract.Payment) event.Event {
	t.Helper()
	return inboxtest.NewEventOf(t, contract.PaymentCompleted, 1, p)
}

func overdue(t *testing.T, o Order) event.Event {
	t.Helper()
	return inboxtest.NewEventOf(t, contract.PaymentOverdue, 1, contract.Overdue{OrderID: o.ID, PayBy: o.PayBy})
}

func (s *shop) consume(t *testing.T, e event.Event) inbox.Outcome {
	t.Helper()
	return s.consumer(t, e.Type).Deliver(t, e).Outcome
}

func (s *shop) consumer(t *testing.T, eventType string) *inboxtest.Box {
	t.Helper()
	name, mux := paymentConsumer, s.handlers.paymentEvents()
	if eventType == contract.PaymentOverdue.Type {
		name, mux = timerConsumer, s.handlers.timerEvents()
	}
	return inboxtest.NewBox(t, s.pool, mux, inboxtest.Consumer(name), inboxtest.Checked(s.checker.Validate))
}

func (s *shop) read(t *testing.T, id string) Order {
	t.Helper()
	o, err := read(t.Context(), s.pool, id)
	require.NoError(t, err)
	return o
}

func (s *shop) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// said lists the types and reasons of an order's events in the order of their versions, and fails at a gap.
func (s *shop) said(t *testing.T, id string) (types []string) {
	t.Helper()
	for i, e := range outboxtest.Added(t, s.pool, outboxtest.Key(id)) {
		require.EqualValues(t, i+1, e.Version)
		var data struct{ Reason string }
		require.NoError(t, json.Unmarshal(e.Data, &data))
		types = append(types, strings.TrimSpace(e.Type+" "+data.Reason))
	}
	return types
}

// These are the lines of said.
var (
	placed    = contract.OrderPlaced.Type
	paid      = contract.OrderPaid.Type
	cancelled = contract.OrderCancelled.Type
	refund    = contract.RefundDue.Type
)
