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

// Commands is the write side: each command is one transaction. All fields but Allowances are required.
type Commands struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	// Links checks verification links.
	Links domain.VerificationKey
	// KeysFor bounds how long an idempotency key keeps its answer.
	KeysFor time.Duration
	// Timeout bounds a command, commit included. The caller's deadline may be earlier.
	Timeout time.Duration
	// Allowances limit sign-ups. Default: no limits.
	Allowances Allowances
}

// Rename emits UserRenamed. If the user is not at version expected, it returns a [domain.CodeVersionMismatch].
func (c *Commands) Rename(
	ctx context.Context, id domain.UserID, name domain.Name, expected int64,
) (domain.User, error) {
	renamed, err := change(ctx, c, id, contract.UserRenamed,
		func(user domain.User, at time.Time) (domain.User, domain.UserRenamed, error) {
			return user.Rename(name, expected, at)
		})
	if err == nil {
		fault.Here("customer.rename.committed")
	}
	return renamed, err
}

// Verify emits EmailVerified. Using a token again does nothing. A bad token is a [domain.CodeTokenInvalid], whether its
// user exists or not; an old one is a [domain.CodeTokenExpired].
func (c *Commands) Verify(ctx context.Context, token string) (domain.User, error) {
	claim, err := domain.ParseClaim(token)
	if err != nil {
		return domain.User{}, err
	}
	verified, err := change(ctx, c, claim.UserID, contract.EmailVerified,
		func(user domain.User, at time.Time) (domain.User, domain.EmailVerified, error) {
			if err := c.Links.Verify(claim, user.Email, at); err != nil {
				return user, domain.EmailVerified{}, err
			}
			verified, said := user.VerifyEmail(at)
			return verified, said, nil
		})
	switch {
	case errors.Is(err, errNoUser):
		err = domain.ErrTokenInvalid
	case err == nil:
		fault.Here("customer.verify.committed")
	}
	return verified, err
}

const selectLinkOwner = `select email, status from users where id = $1`

// CheckLink returns the result of [Commands.Verify] and changes nothing.
func (c *Commands) CheckLink(ctx context.Context, token string) (domain.Status, error) {
	claim, err := domain.ParseClaim(token)
	if err != nil {
		return "", err
	}
	var email domain.Email
	var status domain.Status
	err = c.Pool.QueryRow(ctx, selectLinkOwner, claim.UserID).Scan(&email, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", domain.ErrTokenInvalid
	case err != nil:
		return "", fmt.Errorf("read user: %w", err)
	}
	return status, c.Links.Verify(claim, email, now())
}

// A rule that leaves the version as it is has changed nothing.
func change[T any](
	ctx context.Context, c *Commands, id domain.UserID, of event.Definition[T],
	rule func(user domain.User, at time.Time) (domain.User, T, error),
) (domain.User, error) {
	var after domain.User
	err := command.Transaction{Pool: c.Pool, Timeout: c.Timeout}.Run(ctx, func(ctx context.Context, tx pgx.Tx) error {
		before, err := lockUser(ctx, tx, id)
		if err != nil {
			return err
		}
		at := now()
		user, said, err := rule(before, at)
		if err != nil {
			return err
		}
		after = user
		if user.Version == before.Version {
			return nil
		}
		e, err := of.New(string(user.ID), user.Version, at, said)
		if err != nil {
			return err
		}
		writes := &pgx.Batch{}
		queueUpdate(writes, user)
		if err := c.Outbox.Queue(ctx, writes, e); err != nil {
			return fmt.Errorf("add to outbox: %w", err)
		}
		if err := tx.SendBatch(ctx, writes).Close(); err != nil {
			return fmt.Errorf("store change: %w", err)
		}
		return nil
	})
	if err != nil {
		return domain.User{}, err
	}
	c.Outbox.Committed()
	return after, nil
}

var errNoUser = &domain.Error{Code: domain.CodeUserNotFound, Field: "id", Message: "names no customer"}

// lockUser blocks other commands on the user until this transaction ends.
func lockUser(ctx context.Context, tx pgx.Tx, id domain.UserID) (domain.User, error) {
	version, err := outbox.LockKey(ctx, tx, contract.TopicUsers, string(id))
	if err != nil {
		return domain.User{}, err
	}
	user, err := readUser(ctx, tx, id)
	user.Version = version
	return user, err
}

const selectUser = `select id, email, name, status, registered_at from users where id = $1`

func readUser(ctx context.Context, tx pgx.Tx, id domain.UserID) (u domain.User, err error) {
	err = tx.QueryRow(ctx, selectUser, id).Scan(&u.ID, &u.Email, &u.Name, &u.Status, &u.RegisteredAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return u, errNoUser
	case err != nil:
		return u, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

const updateUser = `update users set name = $2, status = $3, updated_at = clock_timestamp() where id = $1`

func queueUpdate(batch *pgx.Batch, u domain.User) {
	batch.Queue(updateUser, string(u.ID), u.Name, u.Status)
}
