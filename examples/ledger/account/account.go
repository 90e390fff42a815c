// Package account holds the rules of the ledger. It imports only the standard library: a rule does not know how it is
// stored.
package account

import (
	"regexp"
	"time"
)

// ID identifies an account, the aggregate of every event here: a UUID in lower case.
type ID string

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ParseID accepts the canonical form alone: an alias (upper case, braces, urn:uuid:) would be a second name.
func ParseID(text string) (ID, error) {
	if !canonicalUUID.MatchString(text) || text == "00000000-0000-0000-0000-000000000000" {
		return "", &Error{CodeInvalidID, "id", "is not a lower-case UUID"}
	}
	return ID(text), nil
}

// Account is the aggregate. Version is the number of its last event, which the outbox counts.
type Account struct {
	ID       ID       `json:"account_id"`
	Currency Currency `json:"currency"`
	Balance  int64    `json:"balance"` // minor units, never below zero
	Version  int64    `json:"version"`
}

// Open returns a new account and its first event.
func Open(id ID, currency Currency, at time.Time) (Account, Opened) {
	return Account{ID: id, Currency: currency, Version: 1}, Opened{AccountID: id, Currency: currency, OpenedAt: at}
}

// Credit adds money. The balance stays within [MaxAmount].
func (a Account) Credit(m Money, at time.Time) (Account, FundsCredited, error) {
	if err := a.takes(m); err != nil {
		return a, FundsCredited{}, err
	}
	if m.Amount > MaxAmount-a.Balance {
		return a, FundsCredited{}, &Error{CodeBalanceTooLarge, "amount", "would take the balance beyond 9007199254740991"}
	}
	a.Balance, a.Version = a.Balance+m.Amount, a.Version+1
	return a, FundsCredited{AccountID: a.ID, Amount: m.Amount, Currency: m.Currency, CreditedAt: at}, nil
}

// Debit takes money. The balance stays at zero or above.
func (a Account) Debit(m Money, at time.Time) (Account, FundsDebited, error) {
	if err := a.takes(m); err != nil {
		return a, FundsDebited{}, err
	}
	if m.Amount > a.Balance {
		return a, FundsDebited{}, &Error{CodeInsufficientFunds, "amount", "is more than the account holds"}
	}
	a.Balance, a.Version = a.Balance-m.Amount, a.Version+1
	return a, FundsDebited{AccountID: a.ID, Amount: m.Amount, Currency: m.Currency, DebitedAt: at}, nil
}

func (a Account) takes(m Money) error {
	if m.Currency != a.Currency {
		return &Error{CodeCurrencyMismatch, "currency", "is not the account's"}
	}
	return nil
}
