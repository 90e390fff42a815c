package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service/eventing"
)

const handlerReceipt = "mail.receipt"

// receipts mails receipts: the effect of a lease, at most once unless MAIL_ON_UNCERTAIN allows more. Several processes
// may share the work.
type receipts struct {
	*lease.Runner
	pool *pgxpool.Pool
	smtp *mail.Sender
}

func newReceipts(node *eventing.Node, cfg Config) (r *receipts, err error) {
	r = &receipts{pool: node.Pool, smtp: &mail.Sender{Config: cfg.SMTP, From: cfg.MailFrom}}
	r.Runner, err = lease.New(lease.Config{
		Handler: handlerReceipt, Pool: node.Pool, Settings: cfg.Mail, Timeout: cfg.SMTP.Timeout,
		Effect: lease.Effect{Do: r.send, Purged: deleteReceipts, Timeout: cfg.SMTP.Timeout + mail.Margin},
		Log:    node.Log, Registerer: node.Admin.Registry(),
	})
	return r, err
}

const selectReceipt = `
select r.id::text, r.correlation_id, o.id::text, o.email, o.amount, o.currency
from receipt r join orders o on o.id = r.order_id where r.event_id = $1`

// The mail has the receipt's id, so a receiver can detect a second copy.
func (r *receipts) send(ctx context.Context, c *lease.Claim) error {
	var id string
	var o Order
	err := r.pool.QueryRow(ctx, selectReceipt, c.EventID).Scan(
		&id, &c.CorrelationID, &o.ID, &o.Email, &o.Amount, &o.Currency)
	if errors.Is(err, pgx.ErrNoRows) {
		return failure.AsPermanent(errors.New("read receipt: there is none"))
	}
	if err != nil {
		return fmt.Errorf("read receipt: %w", err)
	}
	letter := mail.Letter{
		MessageID: id + "@order.example.com",
		To:        o.Email,
		Subject:   "Your receipt",
		Text:      fmt.Sprintf("Thank you. We have received %s for your order %s.\n", inWords(o.Money), o.ID),
		WrittenAt: c.At,
	}
	return r.smtp.Submit(ctx, letter, c.Begin)
}

// deleteReceipts leaves no receipt without its lease.
func deleteReceipts(ctx context.Context, tx pgx.Tx, eventIDs []string) error {
	if _, err := tx.Exec(ctx, `delete from receipt where event_id = any($1)`, eventIDs); err != nil {
		return fmt.Errorf("delete receipts: %w", err)
	}
	return nil
}

// inWords writes two decimals, as most currencies have.
func inWords(m contract.Money) string {
	return fmt.Sprintf("%d.%02d %s", m.Amount/100, m.Amount%100, m.Currency)
}
