package order

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/inboxtest"
	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/examples/order/contract"
)

func TestMain(m *testing.M) { pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...) }

// shop is the service without its edges, on a database of its own.
type shop struct {
	pool     *pgxpool.Pool
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
		pool: pool, handlers: handlers{out},
		commands: &Commands{
			Pool: pool, Outbox: out, PayWithin: 15 * time.Minute, KeysFor: time.Hour, Timeout: inboxtest.WaitLimit,
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

// told is an event that tells of a payment.
func told(t *testing.T, p contract.Payment) cloudevent.Event {
	t.Helper()
	event, err := contract.PaymentCompleted.New(p.PaymentID, 1, p.CompletedAt, p)
	require.NoError(t, err)
	event.ID = uuid.Must(uuid.NewV7()).String()
	return event
}

func overdue(t *testing.T, o Order) cloudevent.Event {
	t.Helper()
	event, err := contract.PaymentOverdue.New(o.ID, 1, o.PayBy, contract.Overdue{OrderID: o.ID, PayBy: o.PayBy})
	require.NoError(t, err)
	event.ID = uuid.Must(uuid.NewV7()).String()
	return event
}

// consume delivers an event, as a consumer's process would, and returns what became of it.
func (s *shop) consume(t *testing.T, event cloudevent.Event) inbox.Outcome {
	t.Helper()
	outcome, err := s.delivery(t, event)()
	require.NoError(t, err)
	return outcome
}

// delivery makes a consumer for one delivery, to be run once, in any goroutine.
func (s *shop) delivery(t *testing.T, event cloudevent.Event) func() (inbox.Outcome, error) {
	t.Helper()
	b, mux := inboxtest.On(s.pool), s.handlers.paymentEvents()
	b.Config.Consumer = paymentConsumer
	if event.Type == contract.PaymentOverdue.Type {
		b.Config.Consumer, mux = timerConsumer, s.handlers.timerEvents()
	}
	var outcome inbox.Outcome
	b.Host.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) { outcome = o }
	in, record := b.Inbox(t), inboxtest.Record(t, event, 1)
	return func() (inbox.Outcome, error) {
		err := inboxtest.Deliver(in, mux, record)
		return outcome, err
	}
}

func (s *shop) read(t *testing.T, id string) Order {
	t.Helper()
	o, err := read(t.Context(), s.pool, selectOrder, id)
	require.NoError(t, err)
	return o
}

func (s *shop) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// said are the types of an order's events with what their payloads say as a reason, in the order of their versions,
// which leave no gap.
func (s *shop) said(t *testing.T, id string) (types []string) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `select version, event_type,
		coalesce(convert_from(payload, 'UTF8')::jsonb ->> 'reason', '') from outbox
		where key = $1 and topic = $2 order by version`, id, contract.TopicOrders)
	require.NoError(t, err)
	var version int64
	var name, reason string
	_, err = pgx.ForEachRow(rows, []any{&version, &name, &reason}, func() error {
		if reason != "" {
			name += " " + reason
		}
		types = append(types, name)
		require.Len(t, types, int(version))
		return nil
	})
	require.NoError(t, err)
	return types
}

// What an order says, as said lists it.
var (
	placed    = contract.OrderPlaced.Type
	paid      = contract.OrderPaid.Type
	cancelled = contract.OrderCancelled.Type
	refund    = contract.RefundDue.Type
)
