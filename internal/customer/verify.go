package customer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// Verify marks the user's address as theirs and emits EmailVerified. A token may be used again: the user is verified
// already and nothing happens.
//
// Every token that is not good is the same [domain.CodeTokenInvalid], whether its user exists or not; a good one that
// is too old is a [domain.CodeTokenExpired].
func (c *Commands) Verify(ctx context.Context, token string) (domain.User, error) {
	claim, err := domain.ParseClaim(token)
	if err != nil {
		return domain.User{}, err
	}
	var user domain.User
	err = c.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		locked, err := lock(ctx, tx, claim.UserID)
		if errors.Is(err, &domain.Error{Code: domain.CodeUserNotFound}) {
			return errUnknownToken
		}
		if err != nil {
			return err
		}
		at := now()
		if err := c.Links.Verify(claim, locked.Email, at); err != nil {
			return err
		}
		verified, said, changed := locked.VerifyEmail(at)
		user = verified
		if !changed {
			return nil
		}
		return save(ctx, c, tx, user, contract.EmailVerified, said)
	})
	if err != nil {
		return domain.User{}, err
	}
	fault.Here("customer.verify.committed")
	return user, nil
}

// errUnknownToken is the answer to a token of no user.
var errUnknownToken = &domain.Error{
	Code: domain.CodeTokenInvalid, Field: "token", Message: "is not a valid verification token",
}

const selectLinkOwner = `select email, status from users where id = $1`

// CheckLink says what [Commands.Verify] would make of the token, and changes nothing: the status of its user, or the
// same errors.
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
		return "", errUnknownToken
	case err != nil:
		return "", fmt.Errorf("read user: %w", err)
	}
	return status, c.Links.Verify(claim, email, now())
}
