package customer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/domain"
)

const insertUser = `
insert into users (id, email, email_key, name, status, version, registered_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (email_key) do nothing`

// queueInsert adds the insert of a new user to a batch, whose error it is if the address is taken. It waits for a
// signup with the same address that is under way: the first to commit has the address. The id goes as a string: for a
// type of its own pgx tries the column's binary form first, which costs an error each time.
func queueInsert(batch *pgx.Batch, u domain.User) {
	batch.Queue(insertUser, string(u.ID), u.Email, u.Email.Key(), u.Name, u.Status, u.Version, u.RegisteredAt).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return &domain.Error{Code: domain.CodeEmailTaken, Field: "email", Message: "belongs to another customer"}
			}
			return nil
		})
}

const selectUserForUpdate = `
select id, email, name, status, version, registered_at from users where id = $1 for no key update`

// lock loads a user and holds the row until the transaction ends, which puts the user's events in one order: the next
// command on the same user sees this one's version or waits.
func lock(ctx context.Context, tx pgx.Tx, id domain.UserID) (domain.User, error) {
	var u domain.User
	err := tx.QueryRow(ctx, selectUserForUpdate, id).
		Scan(&u.ID, &u.Email, &u.Name, &u.Status, &u.Version, &u.RegisteredAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return u, &domain.Error{Code: domain.CodeUserNotFound, Field: "id", Message: "names no customer"}
	case err != nil:
		return u, fmt.Errorf("lock user: %w", err)
	}
	return u, nil
}

const updateUser = `
update users set name = $2, status = $3, version = $4, updated_at = clock_timestamp() where id = $1`

func update(ctx context.Context, tx pgx.Tx, u domain.User) error {
	if _, err := tx.Exec(ctx, updateUser, u.ID, u.Name, u.Status, u.Version); err != nil {
		return fmt.Errorf("update user: %w", err)
	}
	return nil
}
