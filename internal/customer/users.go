package customer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
)

// Commands is the write side: each command is one transaction. Allowances are optional.
type Commands struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	Links  domain.VerificationKey
	// KeysFor is how long an idempotency key keeps its answer.
	KeysFor time.Duration
	// Timeout bounds a command, commit included.
	Timeout    time.Duration
	Allowances Allowances
}

// Rename emits UserRenamed. If the user is not at version expected, it returns a [domain.CodeVersionMismatch].
func (c *Commands) Rename(
	ctx context.Context, id domain.UserID, name domain.Name, expected int64,
) (user domain.User, err error) {
	err = c.transaction().Run(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockUser(ctx, tx, id)
		if err != nil {
			return err
		}
		at := now()
		after, renamed, err := before.Rename(name, expected, at)
		if err != nil {
			return err
		}
		e, err := event.New(contract.UserRenamed, after.Version, renamed)
		if err != nil {
			return err
		}
		user = after
		return c.store(ctx, tx, user, e)
	})
	if err != nil {
		return domain.User{}, err
	}
	c.Outbox.Committed()
	fault.Here("customer.rename.committed")
	return user, nil
}

// Verify emits EmailVerified. Using a token again does nothing. A bad token is a [domain.CodeTokenInvalid], whether its
// user exists or not; an old one is a [domain.CodeTokenExpired].
func (c *Commands) Verify(ctx context.Context, text string) (user domain.User, err error) {
	token, err := domain.ParseToken(text)
	if err != nil {
		return domain.User{}, err
	}
	err = c.transaction().Run(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockUser(ctx, tx, token.UserID)
		if err != nil {
			return err
		}
		at := now()
		if err := c.Links.Verify(token, before.Email, at); err != nil {
			return err
		}
		after, verified := before.VerifyEmail(at)
		user = after
		if after.Version == before.Version {
			return nil // verified already
		}
		e, err := event.New(contract.EmailVerified, user.Version, verified)
		if err != nil {
			return err
		}
		return c.store(ctx, tx, user, e)
	})
	if err != nil {
		return domain.User{}, linkError(err)
	}
	c.Outbox.Committed()
	fault.Here("customer.verify.committed")
	return user, nil
}

func (c *Commands) transaction() command.Transaction {
	return command.Transaction{Pool: c.Pool, Timeout: c.Timeout}
}

// CheckLink returns the result of [Commands.Verify] and changes nothing.
func (c *Commands) CheckLink(ctx context.Context, text string) (domain.Status, error) {
	token, err := domain.ParseToken(text)
	if err != nil {
		return "", err
	}
	user, err := scanUser(c.Pool.QueryRow(ctx, selectUser, token.UserID))
	if err != nil {
		return "", linkError(err)
	}
	return user.Status, c.Links.Verify(token, user.Email, now())
}

// linkError hides whether a link's user exists.
func linkError(err error) error {
	if errors.Is(err, errNoUser) {
		return domain.ErrTokenInvalid
	}
	return err
}

var errNoUser = &domain.Error{Code: domain.CodeUserNotFound, Field: "id", Message: "names no customer"}

// lockUser blocks other commands on the user until this transaction ends.
func lockUser(ctx context.Context, tx pgx.Tx, id domain.UserID) (domain.User, error) {
	version, err := outbox.LockKey(ctx, tx, contract.TopicUsers, string(id))
	if err != nil {
		return domain.User{}, err
	}
	user, err := scanUser(tx.QueryRow(ctx, selectUser, id))
	user.Version = version
	return user, err
}

const selectUser = `select id, email, name, status, registered_at from users where id = $1`

func scanUser(row pgx.Row) (u domain.User, err error) {
	err = row.Scan(&u.ID, &u.Email, &u.Name, &u.Status, &u.RegisteredAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return u, errNoUser
	case err != nil:
		return u, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

const updateUser = `update users set name = $2, status = $3, updated_at = clock_timestamp() where id = $1`

// store writes a changed user and its event.
func (c *Commands) store(ctx context.Context, tx pgx.Tx, u domain.User, e event.Event) error {
	writes := &pgx.Batch{}
	writes.Queue(updateUser, string(u.ID), u.Name, u.Status)
	if err := c.Outbox.Queue(ctx, writes, e); err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	if err := tx.SendBatch(ctx, writes).Close(); err != nil {
		return fmt.Errorf("store change: %w", err)
	}
	return nil
}
