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

// Movement is a credit or a debit.
type Movement struct {
	Key      string // of the request, for its retries; empty: none
	Account  account.ID
	Money    account.Money
	Expected *int64 // version of the account that the caller has seen; nil: any
}

// Credit adds the money and emits FundsCredited, all or nothing; see [Commands.move].
func (c *Commands) Credit(ctx context.Context, m Movement) (command.Answer, error) {
	return c.move(ctx, "credit", m, func(a account.Account, at time.Time) (account.Account, event.Event, error) {
		after, said, err := a.Credit(m.Money, at)
		if err != nil {
			return a, event.Event{}, err
		}
		e, err := contract.FundsCredited.New(string(a.ID), after.Version, at, said)
		return after, e, err
	})
}

// Debit takes the money and emits FundsDebited, all or nothing; see [Commands.move]. The balance stays at zero or
// above.
func (c *Commands) Debit(ctx context.Context, m Movement) (command.Answer, error) {
	return c.move(ctx, "debit", m, func(a account.Account, at time.Time) (account.Account, event.Event, error) {
		after, said, err := a.Debit(m.Money, at)
		if err != nil {
			return a, event.Event{}, err
		}
		e, err := contract.FundsDebited.New(string(a.ID), after.Version, at, said)
		return after, e, err
	})
}

type decision func(a account.Account, at time.Time) (after account.Account, said event.Event, err error)

// move reads the account without a lock, decides, and writes account and event at the next version. A command that
// names a version is decided on that one alone: at another it is a [account.CodeVersionMismatch], and after a lost race
// the outbox's ErrVersionConflict. A command that names none is decided anew on the newest version, up to
// [Commands.Attempts] times. A refused command stores nothing. The same key with the same command gives the first
// answer again, at any later version.
func (c *Commands) move(ctx context.Context, scope string, m Movement, decide decision) (command.Answer, error) {
	attempts := c.Attempts
	if m.Expected != nil {
		attempts = 1
	}
	return command.Retry(ctx, attempts, func(ctx context.Context) (command.Answer, error) {
		return c.moveOnce(ctx, scope, m, decide)
	})
}

// moveOnce takes three round trips: begin, claim and read; the writes; commit. The event goes first: two commands race
// for its key's row in the outbox.
func (c *Commands) moveOnce(ctx context.Context, scope string, m Movement, decide decision) (command.Answer, error) {
	var current account.Account
	first := &pgx.Batch{}
	queueSelect(first, m.Account, &current)
	claim := command.Claim{Scope: scope, Key: m.Key, Fingerprint: m.fingerprint()}
	return c.once(ctx, claim, first, func(ctx context.Context, writes *pgx.Batch) (command.Answer, error) {
		if current.ID == "" {
			return command.Answer{}, errNotFound
		}
		if m.Expected != nil {
			if err := current.Expect(*m.Expected); err != nil {
				return command.Answer{}, err
			}
		}
		after, e, err := decide(current, now())
		if err != nil {
			return command.Answer{}, err
		}
		if err := c.Outbox.Queue(ctx, writes, e); err != nil {
			return command.Answer{}, fmt.Errorf("add to outbox: %w", err)
		}
		queueUpdate(writes, after)
		return answerOf(http.StatusOK, after)
	})
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
