package order

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/examples/order/contract"
)

func TestAPaymentPaysItsOrderOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	require.Equal(t, 1, s.count(t, `select count(*) from outbox_scheduled where name = $1`, timer(o.ID)))
	payment := newPayment(o, price)
	event := told(t, payment)
	require.Equal(t, inbox.Applied, s.consume(t, event))
	require.Equal(t, inbox.Duplicate, s.consume(t, event), "the same event again")
	require.Equal(t, inbox.Applied, s.consume(t, told(t, payment)), "the same payment in another event")

	got := s.read(t, o.ID)
	require.Equal(t, []any{StatusPaid, payment.PaymentID, int64(2)}, []any{got.Status, got.PaymentID, got.Version})
	require.Equal(t, []string{placed, paid}, s.said(t, o.ID))
	require.Equal(t, 1, s.count(t, `select count(*) from outbox where headers ->> 'ce_causationid' = $1`, event.ID))
	require.Equal(t, 1, s.count(t, `select count(*) from receipt join lease using (event_id)
		where handler = 'mail.receipt' and state = 'pending'`))
	require.Zero(t, s.count(t, `select count(*) from outbox_scheduled`), "no reminder is left")
	require.Zero(t, s.count(t, `select count(*) from refund`))

	require.Equal(t, inbox.Applied, s.consume(t, overdue(t, o)), "an end of the time that was under way")
	require.Equal(t, StatusPaid, s.read(t, o.ID).Status)
	_, err := s.commands.Cancel(t.Context(), o.ID)
	require.ErrorIs(t, err, errPaid)
}

// Payments without use are to be refunded, each once however often it is told.
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

// A payment of the wrong amount leaves the order waiting: the right one still pays it.
func TestAfterAWrongAmountTheRightOnePays(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	s.consume(t, told(t, newPayment(o, contract.Money{Amount: 1, Currency: "EUR"})))
	require.Equal(t, 1, s.count(t, `select count(*) from outbox_scheduled`), "it still waits")
	s.consume(t, told(t, newPayment(o, price)))
	require.Equal(t, []string{placed, refund + " wrong_amount", paid}, s.said(t, o.ID))
}

// An operator has to look at money for an unknown order before giving it back: a dead letter, at once, that a
// replay takes up when the order is there.
func TestAPaymentForAnUnknownOrderIsPutAside(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	payment := newPayment(Order{ID: uuid.NewString()}, price)
	require.Equal(t, inbox.Dead, s.consume(t, told(t, payment)))
	var code, state string
	require.NoError(t, s.pool.QueryRow(t.Context(), `select code, state from dead_letter`).Scan(&code, &state))
	require.Equal(t, []string{codeUnknownOrder, "waiting"}, []string{code, state})
	require.Zero(t, s.count(t, `select count(*) from outbox`))
}

// Several payments at once, each in a process of its own: one of them pays.
func TestPaymentsThatRace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	var events []cloudevent.Event
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

// The payment and the end of the time to pay at once: the first has its way, and no money is lost.
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

// atOnce delivers each event in a goroutine of its own.
func (s *shop) atOnce(t *testing.T, events ...cloudevent.Event) {
	t.Helper()
	var all errgroup.Group
	for _, event := range events {
		deliver := s.delivery(t, event)
		all.Go(func() error {
			_, err := deliver()
			return err
		})
	}
	require.NoError(t, all.Wait())
}

// A database that a restore has set back is brought to what the published events say.
func TestWhatARestoreTookIsAdopted(t *testing.T) {
	t.Parallel()
	s, restored := newShop(t), newShop(t)
	waiting, done, ended := s.place(t), s.place(t), s.place(t)
	s.consume(t, told(t, newPayment(done, price)))
	s.consume(t, told(t, newPayment(done, price)))
	_, err := s.commands.Cancel(t.Context(), ended.ID)
	require.NoError(t, err)

	rows, err := s.pool.Query(t.Context(), `select key, version, event_type, payload from outbox order by position`)
	require.NoError(t, err)
	tx, err := restored.pool.Begin(t.Context())
	require.NoError(t, err)
	for rows.Next() {
		var e cloudevent.Event
		require.NoError(t, rows.Scan(&e.Key, &e.Version, &e.Type, &e.Data))
		require.NoError(t, adopt(t.Context(), tx, e))
	}
	require.NoError(t, rows.Err())
	require.NoError(t, tx.Commit(t.Context()))
	for _, o := range []Order{waiting, done, ended} {
		require.Equal(t, s.read(t, o.ID), restored.read(t, o.ID))
	}
	const refunds = `select count(*) from refund where reason = 'paid_already'`
	require.Equal(t, s.count(t, refunds), restored.count(t, refunds))
	require.Equal(t, 1, restored.count(t, `select count(*) from outbox_scheduled where name = $1`, timer(waiting.ID)))
	require.Equal(t, inbox.Applied, restored.consume(t, overdue(t, done)), "what comes late changes nothing")
	require.Equal(t, StatusPaid, restored.read(t, done.ID).Status)
}
