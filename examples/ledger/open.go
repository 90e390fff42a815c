package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/examples/ledger/openapi"
	"example.com/twinbox/internal/command"
)

// Open opens an empty account and emits AccountOpened. The same key with the same currency gives the same account;
// without a key each call opens a new one.
func (c *Commands) Open(ctx context.Context, key string, currency account.Currency) (command.Answer, error) {
	fingerprint := sha256.Sum256([]byte(currency))
	claim := command.Claim{Scope: "open", Key: key, Fingerprint: fingerprint[:]}
	return c.once(ctx, claim, nil, func(ctx context.Context, writes *pgx.Batch) (command.Answer, error) {
		id, err := newID()
		if err != nil {
			return command.Answer{}, err
		}
		at := now()
		opened, said := account.Open(id, currency, at)
		event, err := contract.AccountOpened.New(string(id), opened.Version, at, said)
		if err != nil {
			return command.Answer{}, err
		}
		queueInsert(writes, opened, at)
		if err := c.Outbox.Queue(ctx, writes, event); err != nil {
			return command.Answer{}, fmt.Errorf("add to outbox: %w", err)
		}
		return answerOf(http.StatusCreated, opened)
	})
}

func answerOf(status int, a account.Account) (command.Answer, error) {
	body, err := json.Marshal(openapi.AccountState{
		AccountId: string(a.ID), Currency: string(a.Currency), Balance: a.Balance, Version: a.Version,
	})
	if err != nil {
		return command.Answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return command.Answer{Status: status, Body: body}, nil
}
