package ledger

import (
	"context"
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

// readAccount takes no lock. The next version's event is added only if no other command was faster.
func readAccount(ctx context.Context, tx pgx.Tx, id account.ID) (account.Account, error) {
	found := account.Account{ID: id}
	err := tx.QueryRow(ctx, selectAccount, string(id), contract.TopicAccounts).
		Scan(&found.Currency, &found.Balance, &found.Version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return found, errNotFound
	case err != nil:
		return found, fmt.Errorf("read account: %w", err)
	}
	return found, nil
}

var (
	errNotFound     = &account.Error{Code: account.CodeNotFound, Field: "id", Message: "names no account"}
	errOtherVersion = &account.Error{
		Code: account.CodeVersionMismatch, Field: "expected_version", Message: "is not the account's version",
	}
)

// now is in the microseconds that PostgreSQL keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
