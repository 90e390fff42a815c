package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
)

const insertAccount = `insert into account (id, currency, balance, opened_at) values ($1, $2, $3, $4)`

// Open opens an empty account and emits AccountOpened. The same key with the same currency gives the same account;
// without a key each call opens a new one.
func (c *Commands) Open(ctx context.Context, key string, currency account.Currency) (command.Answer, error) {
	fingerprint := sha256.Sum256([]byte(currency))
	claim := command.Claim{Scope: "open", Key: key, Fingerprint: fingerprint[:]}
	do := func(ctx context.Context, _ pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
		id, at := uuid.Must(uuid.NewV7()).String(), now()
		opened, said := account.Open(account.ID(id), currency, at)
		e, err := event.New(contract.AccountOpened, opened.Version, said)
		if err != nil {
			return command.Answer{}, err
		}
		writes.Queue(insertAccount, id, opened.Currency, opened.Balance, at)
		if err := c.Outbox.Queue(ctx, writes, e); err != nil {
			return command.Answer{}, fmt.Errorf("add to outbox: %w", err)
		}
		return encodeAnswer(http.StatusCreated, opened)
	}
	answer, err := c.Transaction.Once(ctx, claim, c.KeysFor, do)
	if err == nil {
		c.Outbox.Committed()
	}
	return answer, err
}

func encodeAnswer(status int, a account.Account) (command.Answer, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return command.Answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return command.Answer{Status: status, Body: body}, nil
}
