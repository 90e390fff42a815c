package customer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// adopt brings back what a restore took from the write side: an event of this service that was published, and that its
// database does not know any more. Events of a user come in the order of their versions. They hold all that a user is,
// so the row is afterwards what it was; answers to idempotency keys are gone.
func adopt(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	switch event.Type {
	case contract.UserRegistered.Type:
		data, err := contract.UserRegistered.Decode(event)
		if err != nil {
			return err
		}
		user, _ := domain.Register(data.UserID, data.Email, data.Name, data.RegisteredAt)
		user.Version = event.Version
		writes := &pgx.Batch{}
		queueInsert(writes, user)
		return tx.SendBatch(ctx, writes).Close()
	case contract.UserRenamed.Type:
		return change(ctx, tx, contract.UserRenamed, event, func(u *domain.User, data domain.UserRenamed) {
			u.Name = data.Name
		})
	case contract.EmailVerified.Type:
		return change(ctx, tx, contract.EmailVerified, event, func(u *domain.User, _ domain.EmailVerified) {
			u.Status = domain.StatusVerified
		})
	}
	return nil
}

// change does to a user what an event says. A user whose first event the broker does not hold any more, and the
// database neither, is gone: the event is passed.
func change[T domain.Event](
	ctx context.Context, tx pgx.Tx, of cloudevent.Definition[T], event cloudevent.Event, apply func(*domain.User, T),
) error {
	data, err := of.Decode(event)
	if err != nil {
		return err
	}
	user, err := lock(ctx, tx, domain.UserID(data.About()))
	if errors.Is(err, &domain.Error{Code: domain.CodeUserNotFound}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("adopt change: %w", err)
	}
	apply(&user, data)
	user.Version = event.Version
	return update(ctx, tx, user)
}
