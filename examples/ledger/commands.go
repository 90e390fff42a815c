package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/outbox"
)

// Commands is the write side: each command runs in one transaction. All fields are required.
type Commands struct {
	Transaction command.Transaction // bounds one attempt at a command
	Outbox      *outbox.Outbox
	// KeysFor is how long an answer is kept for retries under its idempotency key.
	KeysFor time.Duration
	// Attempts bounds the decisions of a command that names no version; see [command.Retry].
	Attempts int
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

var (
	errNotFound     = &account.Error{Code: account.CodeNotFound, Field: "id", Message: "names no account"}
	errOtherVersion = &account.Error{
		Code: account.CodeVersionMismatch, Field: "expected_version", Message: "is not the account's version",
	}
)

// now is in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
