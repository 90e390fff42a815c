package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/outbox"
)

// Commands is the write side: each command runs in one transaction. All fields are required.
type Commands struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	// KeysFor is how long an answer is kept for retries under its idempotency key.
	KeysFor time.Duration
	// Timeout bounds one attempt at a command.
	Timeout time.Duration
	// Attempts bounds the decisions of a command that names no version; see [command.Retry].
	Attempts int
}

// once answers a command under its idempotency key and wakes the relay. first travels with the begin.
func (c *Commands) once(
	ctx context.Context, claim command.Claim, first *pgx.Batch,
	do func(ctx context.Context, writes *pgx.Batch) (command.Answer, error),
) (command.Answer, error) {
	whole := command.Transaction{Pool: c.Pool, Timeout: c.Timeout, First: first}
	answer, err := whole.Once(ctx, claim, c.KeysFor,
		func(ctx context.Context, _ pgx.Tx, writes *pgx.Batch) (command.Answer, error) { return do(ctx, writes) })
	if err == nil {
		c.Outbox.Committed()
	}
	return answer, err
}

const insertAccount = `insert into account (id, currency, balance, opened_at) values ($1, $2, $3, $4)`

func queueInsert(batch *pgx.Batch, a account.Account, at time.Time) {
	batch.Queue(insertAccount, string(a.ID), a.Currency, a.Balance, at)
}

const selectAccount = `
select a.currency, a.balance, k.version
from account a join outbox_key k on k.topic = $2 and k.key = a.id::text
where a.id = $1`

// queueSelect takes no lock. The next version's event is added only if no other command was faster.
func queueSelect(batch *pgx.Batch, id account.ID, into *account.Account) {
	batch.Queue(selectAccount, string(id), contract.TopicAccounts).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&into.Currency, &into.Balance, &into.Version)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil // ID stays empty; an answer that was given before comes first
		case err != nil:
			return fmt.Errorf("read account: %w", err)
		}
		into.ID = id
		return nil
	})
}

var errNotFound = &account.Error{Code: account.CodeNotFound, Field: "id", Message: "names no account"}

const updateAccount = `update account set balance = $2, updated_at = clock_timestamp() where id = $1`

// The event before queueUpdate has locked the account's key at the version that was read.
func queueUpdate(batch *pgx.Batch, a account.Account) {
	batch.Queue(updateAccount, string(a.ID), a.Balance)
}

// now is in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func newID() (account.ID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make account id: %w", err)
	}
	return account.ID(id.String()), nil
}
