package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/outbox"
)

// Each handler runs in the transaction that records the event's id, so it takes effect once. Events for one order wait
// for its key's lock.
type handlers struct{ outbox *outbox.Outbox }

func (h handlers) paymentEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.PaymentCompleted, h.pay)
	return mux
}

func (h handlers) timerEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.PaymentOverdue, h.expire)
	return mux
}

// codeUnknownOrder is the code of the dead letter of a payment for an unknown order. Waiting does not help, because
// clients get ids of stored orders only: an operator has to find out whose money it is.
const codeUnknownOrder = "unknown_order"

const (
	selectRefunded = `select exists (select from refund where payment_id = $1)`

	insertRefund = `insert into refund (payment_id, order_id, reason, due_at) values ($1, $2, $3, $4)`
)

const insertReceipt = `insert into receipt (event_id, id, order_id, correlation_id) values ($1, $2, $3, $4)`

// The first payment of the right amount pays the order: pay adds OrderPaid and the receipt's lease, and takes the
// reminder back. Others are refunded. A provider may report a payment in several events: the first one decides.
func (h handlers) pay(ctx context.Context, tx pgx.Tx, e event.Event, payment contract.Payment) error {
	o, err := lock(ctx, tx, payment.OrderID)
	if errors.Is(err, errUnknownOrder) {
		return inbox.PermanentAs(codeUnknownOrder, err)
	}
	if err != nil || o.PaymentID == payment.PaymentID {
		return err
	}
	var isRefunded bool
	err = tx.QueryRow(ctx, selectRefunded, payment.PaymentID).Scan(&isRefunded)
	if err != nil {
		return fmt.Errorf("read refund: %w", err)
	}
	if isRefunded {
		return nil
	}
	at := now()
	if reason := o.refundOf(payment); reason != "" {
		if _, err := tx.Exec(ctx, insertRefund, payment.PaymentID, o.ID, reason, at); err != nil {
			return fmt.Errorf("insert refund: %w", err)
		}
		return save(ctx, tx, h.outbox, &o, contract.RefundDue, contract.Refund{
			OrderID: o.ID, PaymentID: payment.PaymentID, Money: payment.Money, Reason: reason, DueAt: at,
		})
	}
	o.Status, o.PaymentID = StatusPaid, payment.PaymentID
	if err := save(ctx, tx, h.outbox, &o, contract.OrderPaid, contract.Paid{
		OrderID: o.ID, PaymentID: o.PaymentID, Money: o.Money, PaidAt: at,
	}); err != nil {
		return err
	}
	if _, err := outbox.Cancel(ctx, tx, timer(o.ID)); err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	if _, err := tx.Exec(ctx, insertReceipt, e.ID, id, o.ID, e.CorrelationID()); err != nil {
		return fmt.Errorf("insert receipt: %w", err)
	}
	return inbox.Queue(ctx, tx, lease.Intent, handlerReceipt, e.ID)
}

func (h handlers) expire(ctx context.Context, tx pgx.Tx, _ event.Event, overdue contract.Overdue) error {
	o, err := lock(ctx, tx, overdue.OrderID)
	if errors.Is(err, errUnknownOrder) {
		return inbox.PermanentAs(codeUnknownOrder, err)
	}
	if err != nil || o.Status != StatusPlaced {
		return err
	}
	return cancel(ctx, tx, h.outbox, &o, contract.ReasonUnpaid)
}
