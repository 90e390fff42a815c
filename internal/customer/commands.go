package customer

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/frame/command"
	"example.com/twinbox/internal/domain"
)

// Commands is the write side: everything that may happen to a user, each in one transaction. All fields but the last
// are required.
type Commands struct {
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

// transaction runs fn in one transaction of its own, and wakes the relay.
func (c *Commands) transaction(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	err := command.Transaction{Pool: c.Pool, Timeout: c.Timeout}.Run(ctx, fn)
	if err == nil {
		c.Outbox.Committed()
	}
	return err
}

// forget deletes expired answers and allowances.
func (c *Commands) forget(ctx context.Context) error {
	return command.Forget(ctx, c.Pool, command.DeleteExpiredAnswers, deleteUnusedAllowances)
}

// save stores a user that this transaction has locked, and appends the event that says what has changed.
func save[T domain.Event](
	ctx context.Context, c *Commands, tx pgx.Tx, user domain.User, of cloudevent.Definition[T], said T,
) error {
	if err := update(ctx, tx, user); err != nil {
		return err
	}
	event, err := of.New(string(user.ID), user.Version, said.HappenedAt(), said)
	if err != nil {
		return err
	}
	if _, err := c.Outbox.Add(ctx, tx, event); err != nil {
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
