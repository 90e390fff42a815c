package order

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/outboxtest"
)

func TestAPaymentPaysItsOrderOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	require.Equal(t, 1, s.count(t, `select count(*) from outbox_scheduled where name = $1`, timer(o.ID)))
	payment := newPayment(o, price)
	e := told(t, payment)
	require.Equal(t, inbox.Applied, s.consume(t, e))
	require.Equal(t, inbox.Duplicate, s.consume(t, e), "the same event again")
	require.Equal(t, inbox.Applied, s.consume(t, told(t, payment)), "the same payment in another event")

	got := s.read(t, o.ID)
	require.Equal(t, []any{StatusPaid, payment.PaymentID, int64(2)}, []any{got.Status, got.PaymentID, got.Version})
	require.Equal(t, []string{placed, paid}, s.said(t, o.ID))
	outboxtest.RequireAdded(t, s.pool, contract.OrderPaid, outboxtest.CausedBy(e.ID))
	require.Equal(t, 1, s.count(t, `select count(*) from receipt join lease using (event_id)
		where handler = 'mail.receipt' and state = 'pending'`))
	require.Zero(t, s.count(t, `select count(*) from outbox_scheduled`), "no reminder is left")
	require.Zero(t, s.count(t, `select count(*) from refund`))

	require.Equal(t, inbox.Applied, s.consume(t, overdue(t, o)), "an end of the time that was under way")
	require.Equal(t, StatusPaid, s.read(t, o.ID).Status)
	_, err := s.commands.Cancel(t.Context(), o.ID)
	require.ErrorIs(t, err, errPaid)
}

func TestPaymentsThatAnOrderHasNoUseFor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for name, c := range map[string]struct {
		before func(o Order)
		money  contract.Money
		said   []string
		status Status
	}{
		"cancelled": {
			before: func(o Order) {
				_, err := s.commands.Cancel(t.Context(), o.ID)
				require.NoError(t, err)
			},
			money: price, said: []string{placed, cancelled + " requested", refund + " order_cancelled"}, status: StatusCancelled,
		},
		"expired": {
			before: func(o Order) { require.Equal(t, inbox.Applied, s.consume(t, overdue(t, o))) },
			money:  price, said: []string{placed, cancelled + " unpaid", refund + " order_cancelled"}, status: StatusCancelled,
		},
		"paid": {
			before: func(o Order) { require.Equal(t, inbox.Applied, s.consume(t, told(t, newPayment(o, price)))) },
			money:  price, said: []string{placed, paid, refund + " paid_already"}, status: StatusPaid,
		},
		"too little": {
			before: func(Order) {}, money: contract.Money{Amount: 1998, Currency: "EUR"},
			said: []string{placed, refund + " wrong_amount"}, status: StatusPlaced,
		},
		"another currency": {
			before: func(Order) {}, money: contract.Money{Amount: 1999, Currency: "USD"},
			said: []string{placed, refund + " wrong_amount"}, status: StatusPlaced,
		},
	} {
		o := s.place(t)
		c.before(o)
		payment := newPayment(o, c.money)
		for range 2 {
			require.Equal(t, inbox.Applied, s.consume(t, told(t, payment)), name)
		}
		require.Equal(t, c.said, s.said(t, o.ID), name)
		require.Equal(t, c.status, s.read(t, o.ID).Status, name)
		require.Equal(t, 1, s.count(t, `select count(*) from refund where payment_id = $1`, payment.PaymentID), name)
	}
}

func TestAfterAWrongAmountTheRightOnePays(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	s.consume(t, told(t, newPayment(o, contract.Money{Amount: 1, Currency: "EUR"})))
	require.Equal(t, 1, s.count(t, `select count(*) from outbox_scheduled`), "it still waits")
	s.consume(t, told(t, newPayment(o, price)))
	require.Equal(t, []string{placed, refund + " wrong_amount", paid}, s.said(t, o.ID))
}

func TestARefundedPaymentPaysNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	payment := newPayment(o, contract.Money{Amount: 1, Currency: "EUR"})
	s.consume(t, told(t, payment))
	payment.Money = price
	require.Equal(t, inbox.Applied, s.consume(t, told(t, payment)), "the same payment, corrected")
	require.Equal(t, []string{placed, refund + " wrong_amount"}, s.said(t, o.ID))
	require.Equal(t, StatusPlaced, s.read(t, o.ID).Status)
}

// The dead letter comes without retries. A replay succeeds once the order is there.
func TestAPaymentForAnUnknownOrderIsPutAside(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	payment := newPayment(Order{ID: uuid.NewString()}, price)
	e := told(t, payment)
	letter := s.consumer(t, e.Type).RequireOutcome(t, inbox.Dead, e).DeadLetter
	require.Equal(t, []any{codeUnknownOrder, deadletter.Waiting}, []any{letter.Code, letter.State})
	outboxtest.RequireNone(t, s.pool)
}

func TestPaymentsThatRace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	var events []event.Event
	for range 6 {
		payment := newPayment(o, price)
		events = append(events, told(t, payment), told(t, payment))
	}
	s.atOnce(t, events...)
	said := s.said(t, o.ID)
	require.Equal(t, []string{placed, paid}, said[:2])
	require.Len(t, said, 7, "one pays, five are given back")
	require.Equal(t, 1, s.count(t, `select count(*) from receipt`))
	require.Equal(t, 5, s.count(t, `select count(*) from refund where reason = 'paid_already'`))
}

func TestAPaymentThatRacesTheEndOfItsTime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 5 {
		o := s.place(t)
		s.atOnce(t, told(t, newPayment(o, price)), overdue(t, o))
		if s.read(t, o.ID).Status == StatusPaid {
			require.Equal(t, []string{placed, paid}, s.said(t, o.ID))
		} else {
			require.Equal(t, []string{placed, cancelled + " unpaid", refund + " order_cancelled"}, s.said(t, o.ID))
		}
	}
}

func (s *shop) atOnce(t *testing.T, events ...event.Event) {
	t.Helper()
	var all sync.WaitGroup
	for _, e := range events {
		process := s.consumer(t, e.Type)
		all.Go(func() { process.Deliver(t, e) })
	}
	all.Wait()
	require.False(t, t.Failed())
}

func placedIn(t *testing.T, orders ...Order) func(testing.TB, *pgxpool.Pool) {
	t.Helper()
	out, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	return func(t testing.TB, pool *pgxpool.Pool) {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			for _, o := range orders {
				e, err := event.New(contract.OrderPlaced, 1, contract.Placed{
					OrderID: o.ID, Email: "ada@example.org", Money: o.Money, PlacedAt: o.PlacedAt, PayBy: o.PayBy,
				})
				require.NoError(t, err)
				_, err = tx.Exec(t.Context(), insertOrder, o.ID, "ada@example.org", o.Amount, o.Currency, o.PlacedAt, o.PayBy)
				require.NoError(t, err)
				require.NoError(t, remind(t.Context(), tx, out, o, outbox.DueAt(o.PayBy)))
				_, err = out.Add(t.Context(), tx, e)
				require.NoError(t, err)
			}
			return nil
		}))
	}
}

func ordered(n int) (orders []Order) {
	for range n {
		orders = append(orders, Order{
			ID: uuid.Must(uuid.NewV7()).String(), Money: price, PlacedAt: now(), PayBy: now().Add(time.Hour),
		})
	}
	return orders
}

// Clocks and random ids differ.
func trial(t *testing.T, handle func(handlers) *inbox.Mux, orders []Order) inboxtest.Idempotence {
	t.Helper()
	out, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	return inboxtest.Idempotence{
		Handlers:   func(*pgxpool.Pool) inboxtest.Handlers { return handle(handlers{out}) },
		Migrations: Migrations(), Prepare: placedIn(t, orders...),
		Tables: []string{"orders", "refund", "receipt", "lease", "outbox", "outbox_scheduled"},
		Except: []string{
			"refund.due_at", "receipt.id", "receipt.created_at", "lease.due_at", "lease.added_at",
			"outbox.xid", "outbox.position", "outbox.event_id", "outbox.occurred_at", "outbox.payload",
			"outbox_scheduled.scheduled_at", "outbox_scheduled.event_id",
		},
	}
}

func TestPaymentsHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	orders := ordered(3)
	first, wrong := newPayment(orders[0], price), newPayment(orders[1], contract.Money{Amount: 1, Currency: "EUR"})
	of := trial(t, handlers.paymentEvents, orders)
	of.AcrossKeys = true // the first payment of an order is the one that pays
	for _, p := range []contract.Payment{first, first, newPayment(orders[0], price), wrong, newPayment(orders[1], price)} {
		of.Events = append(of.Events, told(t, p))
	}
	inboxtest.RequireIdempotent(t, of)
}

func TestTheEndOfTheTimeToPayHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	orders := ordered(2)
	of := trial(t, handlers.timerEvents, orders)
	of.Events = []event.Event{overdue(t, orders[0]), overdue(t, orders[1])}
	inboxtest.RequireIdempotent(t, of)
}
