package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
)

type Movement struct {
	Key      string // of the request, for its retries; empty: none
	Account  account.ID
	Money    account.Money
	Expected *int64 // version of the account that the caller has seen; nil: any
}

// Credit adds the money and emits FundsCredited, all or nothing; see [move].
func (c *Commands) Credit(ctx context.Context, m Movement) (command.Answer, error) {
	return move(ctx, c, "credit", m, contract.FundsCredited, account.Account.Credit)
}

// Debit takes the money and emits FundsDebited, all or nothing; see [move]. The balance stays at zero or above.
func (c *Commands) Debit(ctx context.Context, m Movement) (command.Answer, error) {
	return move(ctx, c, "debit", m, contract.FundsDebited, account.Account.Debit)
}

const updateAccount = `update account set balance = $2, updated_at = clock_timestamp() where id = $1`

// move reads the account without a lock, decides, and writes account and event at the next version. A command that
// names a version is decided on that one alone: at another it is a [account.CodeVersionMismatch], and after a lost race
// the outbox's ErrVersionConflict. A command that names none is decided anew on the newest version, up to
// [Commands.Attempts] times. A refused command stores nothing. The same key with the same command gives the first
// answer again, at any later version.
//
// The event goes first: two commands race for its key's row in the outbox.
func move[T event.Ruled](
	ctx context.Context, c *Commands, scope string, m Movement, of event.Definition[T],
	rule func(account.Account, account.Money, time.Time) (account.Account, T, error),
) (command.Answer, error) {
	attempts := c.Attempts
	if m.Expected != nil {
		attempts = 1
	}
	claim := command.Claim{Scope: scope, Key: m.Key, Fingerprint: m.fingerprint()}
	answer, err := command.Retry(ctx, attempts, func(ctx context.Context) (command.Answer, error) {
		do := func(ctx context.Context, tx pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
			current, err := readAccount(ctx, tx, m.Account)
			if err != nil {
				return command.Answer{}, err
			}
			if m.Expected != nil && *m.Expected != current.Version {
				return command.Answer{}, errOtherVersion
			}
			at := now()
			after, said, err := rule(current, m.Money, at)
			if err != nil {
				return command.Answer{}, err
			}
			e, err := event.New(of, after.Version, said)
			if err != nil {
				return command.Answer{}, err
			}
			if err := c.Outbox.Queue(ctx, writes, e); err != nil {
				return command.Answer{}, fmt.Errorf("add to outbox: %w", err)
			}
			writes.Queue(updateAccount, string(after.ID), after.Balance)
			return encodeAnswer(http.StatusOK, after)
		}
		return c.Transaction.Once(ctx, claim, c.KeysFor, do)
	})
	if err == nil {
		c.Outbox.Committed()
	}
	return answer, err
}

// fingerprint tells the movement from another one under the same key.
func (m Movement) fingerprint() []byte {
	expected := "any"
	if m.Expected != nil {
		expected = fmt.Sprint(*m.Expected)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", m.Account, m.Money.Amount, m.Money.Currency, expected))
	return sum[:]
}
