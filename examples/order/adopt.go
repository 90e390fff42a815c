package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox"
)

// adopt brings back what a restore took: an event of this service that was published, and that its database does not
// know any more. Events of an order come in the order of their versions, and hold all that an order is. Receipts are
// not: one that was not mailed yet is lost, rather than one mailed twice.
func adopt(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	switch event.Type {
	case contract.OrderPlaced.Type:
		return adoptPlaced(ctx, tx, event)
	case contract.OrderPaid.Type:
		return change(ctx, tx, contract.OrderPaid, event, func(o *Order, said contract.Paid) error {
			o.Status, o.PaymentID = StatusPaid, said.PaymentID
			return nil
		})
	case contract.OrderCancelled.Type:
		return change(ctx, tx, contract.OrderCancelled, event, func(o *Order, _ contract.Cancelled) error {
			o.Status = StatusCancelled
			return nil
		})
	case contract.RefundDue.Type:
		return change(ctx, tx, contract.RefundDue, event, func(o *Order, said contract.Refund) error {
			_, err := tx.Exec(ctx, insertRefund, said.PaymentID, o.ID, said.Reason, said.DueAt)
			return err
		})
	}
	return nil
}

func adoptPlaced(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	data, err := contract.OrderPlaced.Decode(event)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertOrder, data.OrderID, data.Email, data.Amount, data.Currency, data.PlacedAt, data.PayBy)
	if err != nil {
		return fmt.Errorf("adopt order: %w", err)
	}
	out, err := outbox.New(outbox.Config{})
	if err != nil {
		return err
	}
	return remind(ctx, tx, out, Order{ID: data.OrderID, PayBy: data.PayBy}, outbox.DueAt(data.PayBy))
}

// change does to an order what an event says. An order whose first event the broker does not hold any more, and the
// database neither, is gone: the event is passed.
func change[T any](
	ctx context.Context, tx pgx.Tx, of cloudevent.Definition[T], event cloudevent.Event, apply func(*Order, T) error,
) error {
	data, err := of.Decode(event)
	if err != nil {
		return err
	}
	o, err := lock(ctx, tx, event.Key)
	if errors.Is(err, errUnknownOrder) {
		return nil
	}
	if err == nil {
		err = apply(&o, data)
	}
	if err == nil {
		_, err = tx.Exec(ctx, updateOrder, o.ID, o.Status, o.PaymentID)
	}
	if err != nil {
		return fmt.Errorf("adopt change: %w", err)
	}
	return nil
}
