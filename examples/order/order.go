package order

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/web"
)

type Status string

// An order is paid or cancelled once, and stays so.
const (
	StatusPlaced    Status = "placed"
	StatusPaid      Status = "paid"
	StatusCancelled Status = "cancelled"
)

// Order is the aggregate. Version is the number of its last event, which the outbox counts.
type Order struct {
	ID      string `json:"order_id"`
	Version int64  `json:"version"`
	Status  Status `json:"status"`
	contract.Money
	PlacedAt  time.Time `json:"placed_at"`
	PayBy     time.Time `json:"pay_by"`
	PaymentID string    `json:"payment_id,omitempty"`

	Email string `json:"-"`
}

var (
	errUnknownOrder = &web.Error{
		Status: http.StatusNotFound, Code: "order_not_found", Detail: "There is no such order.",
	}
	errPaid = &web.Error{
		Status: http.StatusConflict, Code: "order_paid", Detail: "The order is paid and cannot be cancelled any more.",
	}
)

// refundOf returns why a payment that did not pay the order has no use; empty: it has.
func (o Order) refundOf(p contract.Payment) (reason string) {
	switch {
	case o.Status == StatusCancelled:
		return contract.RefundOrderCancelled
	case o.Status == StatusPaid:
		return contract.RefundPaidAlready
	case o.Money != p.Money:
		return contract.RefundWrongAmount
	}
	return ""
}

// timer names the scheduled end of the time to pay.
func timer(orderID string) string { return "unpaid " + orderID }

const selectOrder = `
select o.id::text, k.version, o.status, o.email, o.amount, o.currency, o.placed_at, o.pay_by,
    coalesce(o.payment_id::text, '')
from orders o join outbox_key k on k.topic = $2 and k.key = o.id::text
where o.id = $1`

// lock reads an order that no other transaction changes until this one ends, with the errors of read.
func lock(ctx context.Context, tx pgx.Tx, id string) (Order, error) {
	if _, err := outbox.LockKey(ctx, tx, contract.TopicOrders, id); err != nil {
		return Order{}, err
	}
	return read(ctx, tx, id)
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read returns errUnknownOrder without an order.
func read(ctx context.Context, db querier, id string) (o Order, err error) {
	err = db.QueryRow(ctx, selectOrder, id, contract.TopicOrders).Scan(
		&o.ID, &o.Version, &o.Status, &o.Email, &o.Amount, &o.Currency, &o.PlacedAt, &o.PayBy, &o.PaymentID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return o, errUnknownOrder
	case err != nil:
		return o, fmt.Errorf("read order: %w", err)
	}
	o.PlacedAt, o.PayBy = o.PlacedAt.UTC(), o.PayBy.UTC()
	return o, nil
}

const updateOrder = `
update orders set status = $2, payment_id = nullif($3, '')::uuid where id = $1`

// save needs a locked order. It adds the event, too.
func save[T event.Ruled](
	ctx context.Context, tx pgx.Tx, out *outbox.Outbox, o *Order, of event.Definition[T], said T,
) error {
	o.Version++
	if _, err := tx.Exec(ctx, updateOrder, o.ID, o.Status, o.PaymentID); err != nil {
		return fmt.Errorf("update order: %w", err)
	}
	e, err := event.New(of, o.Version, said)
	if err != nil {
		return err
	}
	if _, err := out.Add(ctx, tx, e); err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	return nil
}

func cancel(ctx context.Context, tx pgx.Tx, out *outbox.Outbox, o *Order, reason string) error {
	o.Status = StatusCancelled
	return save(ctx, tx, out, o, contract.OrderCancelled, contract.Cancelled{
		OrderID: o.ID, Reason: reason, CancelledAt: now(),
	})
}

// now is in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
