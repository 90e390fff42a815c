package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/event/cloudevent"
)

// adopt brings back what a restore took from the write side: an event of this service that was published, and that its
// database does not know any more. Events of an account come in the order of their versions, so the row is afterwards
// what it was; answers to idempotency keys are gone.
func adopt(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	switch event.Type {
	case contract.AccountOpened.Type:
		data, err := contract.AccountOpened.Decode(event)
		if err != nil {
			return err
		}
		opened, _ := account.Open(data.AccountID, data.Currency, data.OpenedAt)
		writes := &pgx.Batch{}
		queueInsert(writes, opened, data.OpenedAt)
		return tx.SendBatch(ctx, writes).Close()
	case contract.FundsCredited.Type:
		data, err := contract.FundsCredited.Decode(event)
		if err != nil {
			return err
		}
		return adoptMovement(ctx, tx, event, data.Amount)
	case contract.FundsDebited.Type:
		data, err := contract.FundsDebited.Decode(event)
		if err != nil {
			return err
		}
		return adoptMovement(ctx, tx, event, -data.Amount)
	}
	return nil
}

const adoptAccount = `update account set balance = balance + $2, updated_at = clock_timestamp() where id = $1`

// adoptMovement changes an account. One whose first event the broker does not hold any more, and the database neither,
// is gone: the event is passed.
func adoptMovement(ctx context.Context, tx pgx.Tx, event cloudevent.Event, amount int64) error {
	if _, err := tx.Exec(ctx, adoptAccount, event.Key, amount); err != nil {
		return fmt.Errorf("adopt movement: %w", err)
	}
	return nil
}
