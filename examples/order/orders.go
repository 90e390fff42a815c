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
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/frame/command"
)

// Status says how far an order has come.
type Status string

// StatusPlaced is that of an order whose payment is awaited.
const StatusPlaced Status = "placed"

// Order is the aggregate. Version counts its events. Amount is in the minor unit of the currency.
type Order struct {
	ID       string    `json:"order_id"`
	Version  int64     `json:"version"`
	Status   Status    `json:"status"`
	Amount   int64     `json:"amount"`
	Currency string    `json:"currency"`
	PlacedAt time.Time `json:"placed_at"`
}

// Orders is the write side: everything that a client may do to an order, each in one transaction. All fields are
// required.
type Orders struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	// KeysFor is how long an answer is kept for retries under its idempotency key.
	KeysFor time.Duration
	// Timeout bounds a command from its first statement to its commit.
	Timeout time.Duration
}

// transaction runs fn in one transaction of its own and wakes the relay.
func (o *Orders) transaction(ctx context.Context, first *pgx.Batch, fn func(context.Context, pgx.Tx) error) error {
	err := command.Transaction{Pool: o.Pool, Timeout: o.Timeout, First: first}.Run(ctx, fn)
	if err == nil {
		o.Outbox.Committed()
	}
	return err
}

func (o *Orders) forget(ctx context.Context) error {
	return command.Forget(ctx, o.Pool, command.DeleteExpiredAnswers)
}

const insertOrder = `
insert into orders (id, version, status, email, amount, currency, placed_at) values ($1, $2, $3, $4, $5, $6, $7)`

// Placing is what a client asks for.
type Placing struct {
	Key      string // of the request, for its retries; empty: none
	Email    string // where the receipt goes
	Amount   int64
	Currency string
}

// Place stores a new order, the answer under its idempotency key and OrderPlaced, all or nothing. The same key with the
// same request returns the same answer again; with another one [command.ErrKeyReused].
func (o *Orders) Place(ctx context.Context, p Placing) (command.Answer, error) {
	fingerprint := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", p.Email, p.Amount, p.Currency))
	claim := command.Claim{Scope: "place", Key: p.Key, Fingerprint: fingerprint[:]}
	first := &pgx.Batch{}
	if p.Key != "" {
		claim.Queue(first)
	}
	var answer command.Answer
	err := o.transaction(ctx, first, func(ctx context.Context, tx pgx.Tx) (err error) {
		if p.Key != "" {
			given, found, err := claim.Given()
			if err != nil || found {
				answer = given
				return err
			}
		}
		placed := Order{
			ID: uuid.Must(uuid.NewV7()).String(), Version: 1, Status: StatusPlaced, Amount: p.Amount,
			Currency: p.Currency, PlacedAt: now(),
		}
		event, err := contract.OrderPlaced.New(placed.ID, placed.Version, placed.PlacedAt, contract.Placed{
			OrderID: placed.ID, Amount: p.Amount, Currency: p.Currency, PlacedAt: placed.PlacedAt,
		})
		if err != nil {
			return err
		}
		body, err := json.Marshal(placed)
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		answer = command.Answer{Status: http.StatusCreated, Body: body}
		writes := &pgx.Batch{}
		writes.Queue(insertOrder, placed.ID, placed.Version, placed.Status, p.Email, p.Amount, p.Currency, placed.PlacedAt)
		if err := o.Outbox.Queue(ctx, writes, event); err != nil {
			return fmt.Errorf("add to outbox: %w", err)
		}
		if p.Key != "" {
			claim.Store(writes, answer, o.KeysFor)
		}
		if err := tx.SendBatch(ctx, writes).Close(); err != nil {
			return fmt.Errorf("store order: %w", err)
		}
		return nil
	})
	return answer, err
}

// now is the business time of a command, in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
