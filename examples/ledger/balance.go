package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// Balance is an account as its events describe it.
type Balance struct {
	account.Account
	AsOf time.Time `json:"as_of"` // business time of the event at the account's version
}

// A movement has only the change, so none may overtake its predecessor; see the consumer in app.go.
func balanceEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.AccountOpened, openBalance)
	inbox.Handle(mux, contract.FundsCredited, creditBalance)
	inbox.Handle(mux, contract.FundsDebited, debitBalance)
	return mux
}

// No upsert: the inbox prevents a second insert, and a second balance would be a defect.
const insertBalance = `
insert into account_balance (account_id, currency, balance, version, as_of) values ($1, $2, 0, $3, $4)`

func openBalance(ctx context.Context, tx pgx.Tx, e event.Event, data account.Opened) error {
	return inbox.Queue(ctx, tx, insertBalance, string(data.AccountID), data.Currency, e.Version, data.OpenedAt)
}

// The inbox has compared the versions before. Here they protect a handler outside of it.
const updateBalance = `
update account_balance set balance = balance + $3, version = $4, as_of = $5
where account_id = $1 and currency = $2 and version < $4`

func creditBalance(ctx context.Context, tx pgx.Tx, e event.Event, data account.FundsCredited) error {
	return inbox.QueueRows(ctx, tx, errNoBalance, updateBalance,
		string(data.AccountID), data.Currency, data.Amount, e.Version, data.CreditedAt)
}

func debitBalance(ctx context.Context, tx pgx.Tx, e event.Event, data account.FundsDebited) error {
	return inbox.QueueRows(ctx, tx, errNoBalance, updateBalance,
		string(data.AccountID), data.Currency, -data.Amount, e.Version, data.DebitedAt)
}

// codeNoBalance is the code of a movement whose balance is missing or of another currency. A retry cannot help: an
// operator may restore the balance and replay.
const codeNoBalance = "balance_missing"

var errNoBalance = inbox.PermanentAs(codeNoBalance,
	errors.New("no balance of this currency below this version: an earlier event of the account is missing"))

const selectBalance = `
select account_id, currency, balance, version, as_of from account_balance where account_id = $1`

// readBalance does not find an account whose first event has not come back yet.
func readBalance(ctx context.Context, pool *pgxpool.Pool, id account.ID) (Balance, error) {
	var b Balance
	err := pool.QueryRow(ctx, selectBalance, string(id)).Scan(&b.ID, &b.Currency, &b.Balance, &b.Version, &b.AsOf)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return b, errNotFound
	case err != nil:
		return b, fmt.Errorf("read balance: %w", err)
	}
	b.AsOf = b.AsOf.UTC()
	return b, nil
}
