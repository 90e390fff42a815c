package customer

import (
	"context"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// Rename changes the name of a user that the caller has seen at version expected, and emits UserRenamed. If the user
// has changed since, it is a [domain.CodeVersionMismatch] and nothing is appended.
func (c *Commands) Rename(
	ctx context.Context, id domain.UserID, name domain.Name, expected int64,
) (domain.User, error) {
	var user domain.User
	err := c.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		locked, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		renamed, said, err := locked.Rename(name, expected, now())
		if err != nil {
			return err
		}
		user = renamed
		return save(ctx, c, tx, user, contract.UserRenamed, said)
	})
	if err != nil {
		return domain.User{}, err
	}
	fault.Here("customer.rename.committed")
	return user, nil
}
