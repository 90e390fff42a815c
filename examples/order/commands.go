package order

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
)

// Commands is what a client may do to an order, each in one transaction. All fields are required.
type Commands struct {
	Transaction command.Transaction
	Outbox      *outbox.Outbox
	// PayWithin is how long an order waits for its payment.
	PayWithin time.Duration
	// KeysFor is how long an answer is kept for retries under its idempotency key.
	KeysFor time.Duration
}

// Placing is a request for a new order.
type Placing struct {
	Key   string // of the request, for its retries; empty: none
	Email string // where the receipt goes
	contract.Money
}

// Place stores a new order, the answer under its idempotency key, OrderPlaced, and the end of the time to pay as a
// scheduled event: all or nothing. The same key returns the same answer again; with another request
// [command.ErrKeyReused].
func (c *Commands) Place(ctx context.Context, p Placing) (answer command.Answer, err error) {
	fingerprint := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", p.Email, p.Amount, p.Currency))
	claim := command.Claim{Scope: "place", Key: p.Key, Fingerprint: fingerprint[:]}
	answer, err = c.Transaction.Once(ctx, claim, c.KeysFor,
		func(ctx context.Context, tx pgx.Tx, _ *pgx.Batch) (command.Answer, error) { return c.place(ctx, tx, p) })
	if err == nil {
		c.Outbox.Committed()
	}
	return answer, err
}

const insertOrder = `
insert into orders (id, status, email, amount, currency, placed_at, pay_by)
values ($1, 'placed', $2, $3, $4, $5, $6)`

func (c *Commands) place(ctx context.Context, tx pgx.Tx, p Placing) (command.Answer, error) {
	at := now()
	o := Order{
		ID: uuid.Must(uuid.NewV7()).String(), Version: 1, Status: StatusPlaced, Money: p.Money,
		PlacedAt: at, PayBy: at.Add(c.PayWithin),
	}
	if _, err := tx.Exec(ctx, insertOrder, o.ID, p.Email, o.Amount, o.Currency, o.PlacedAt, o.PayBy); err != nil {
		return command.Answer{}, fmt.Errorf("insert order: %w", err)
	}
	e, err := event.New(contract.OrderPlaced, o.Version, contract.Placed{
		OrderID: o.ID, Email: p.Email, Money: o.Money, PlacedAt: at, PayBy: o.PayBy,
	})
	if err != nil {
		return command.Answer{}, err
	}
	if _, err := c.Outbox.Add(ctx, tx, e); err != nil {
		return command.Answer{}, fmt.Errorf("add to outbox: %w", err)
	}
	if err := remind(ctx, tx, c.Outbox, o, outbox.After(c.PayWithin)); err != nil {
		return command.Answer{}, err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return command.Answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return command.Answer{Status: http.StatusCreated, Body: body}, nil
}

// remind uses its own topic: the order's events are numbered with the order's version, which this one does not change.
func remind(ctx context.Context, tx pgx.Tx, out *outbox.Outbox, o Order, due outbox.Due) error {
	e, err := event.New(contract.PaymentOverdue, 0, contract.Overdue{OrderID: o.ID, PayBy: o.PayBy})
	if err != nil {
		return err
	}
	return out.Schedule(ctx, tx, timer(o.ID), due, e)
}

// Cancel ends an order that is not paid, and takes back its reminder. To cancel a cancelled order changes nothing.
func (c *Commands) Cancel(ctx context.Context, id string) (o Order, err error) {
	err = c.Transaction.Run(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if o, err = lock(ctx, tx, id); err != nil {
			return err
		}
		switch o.Status {
		case StatusPaid:
			return errPaid
		case StatusCancelled:
			return nil
		}
		if err := cancel(ctx, tx, c.Outbox, &o, contract.ReasonRequested); err != nil {
			return err
		}
		_, err := outbox.Cancel(ctx, tx, timer(o.ID))
		return err
	})
	if err == nil {
		c.Outbox.Committed()
	}
	return o, err
}
