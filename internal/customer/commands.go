package customer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/internal/domain"
)

// Commands is the write side: everything that may happen to a user, each in one transaction.
type Commands struct {
	pool   *pgxpool.Pool
	outbox *outbox.Outbox
	links  domain.VerificationKey

	keysFor, timeout time.Duration // see CommandsConfig
	allowances       Allowances
}

// CommandsConfig is what commands need. All fields but the last are required.
type CommandsConfig struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	// Links checks the links of verification mails.
	Links domain.VerificationKey
	// KeysFor is how long an answer is kept for retries under its idempotency key.
	KeysFor time.Duration
	// Timeout bounds a command from its first statement to its commit. An earlier deadline of its caller does too.
	Timeout time.Duration
	// Allowances limit sign-ups. Default: no limits.
	Allowances Allowances
}

// NewCommands returns the commands without an API in front of them.
func NewCommands(cfg CommandsConfig) *Commands {
	return &Commands{
		pool: cfg.Pool, outbox: cfg.Outbox, links: cfg.Links, keysFor: cfg.KeysFor, timeout: cfg.Timeout,
		allowances: cfg.Allowances,
	}
}

// errOutcomeUnknown is what a caller gets when the connection was lost around the commit: the command may have
// happened or not. Repeating it is safe, under the same idempotency key or the same expected version.
var errOutcomeUnknown = errors.New("the connection was lost at the commit: the outcome is unknown")

// transaction runs fn in one transaction of its own, whatever becomes of the request: a client that hangs up in the
// middle must not decide whether a commit goes through. The request's deadline holds, though: a body that took most of
// it leaves the rest, since a commit after it would have nobody to answer to. It wakes the relay afterwards.
func (c *Commands) transaction(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return c.transactionWith(ctx, &pgx.Batch{}, fn)
}

// transactionWith is transaction with statements that travel with its begin. When fn runs they have been answered.
func (c *Commands) transactionWith(
	ctx context.Context, first *pgx.Batch, fn func(context.Context, pgx.Tx) error,
) error {
	until := time.Now().Add(c.timeout)
	if asked, has := ctx.Deadline(); has && asked.Before(until) {
		until = asked
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()
	begin := &pgx.Batch{}
	begin.BeginTx(pgx.TxOptions{})
	begin.QueuedQueries = append(begin.QueuedQueries, first.QueuedQueries...)
	results := conn.SendBatch(ctx, begin)
	tx := results.Tx()
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
	if err := results.Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	}
	c.outbox.Committed()
	return nil
}

// emit appends an event of a user that this transaction has locked.
func (c *Commands) emit(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	if _, err := c.outbox.Add(ctx, tx, event); err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	return nil
}

// now is the business time of a command, in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func newUserID() (domain.UserID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make user id: %w", err)
	}
	return domain.UserID(id.String()), nil
}
