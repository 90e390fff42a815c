package account

import (
	"cmp"
	"time"
)

// The events, as their payloads are written to the log and read from it. The JSON Schemas in contract/events are the
// contract. A movement says what has changed and not what the balance is, so a reader needs each of them once, in the
// order of the versions.

// Opened says that there is an account. It is the first event of each.
type Opened struct {
	AccountID ID        `json:"account_id"`
	Currency  Currency  `json:"currency"`
	OpenedAt  time.Time `json:"opened_at"`
}

// FundsCredited says that money came to an account.
type FundsCredited struct {
	AccountID  ID        `json:"account_id"`
	Amount     int64     `json:"amount"` // minor units
	Currency   Currency  `json:"currency"`
	CreditedAt time.Time `json:"credited_at"`
}

// FundsDebited says that money left an account.
type FundsDebited struct {
	AccountID ID        `json:"account_id"`
	Amount    int64     `json:"amount"` // minor units
	Currency  Currency  `json:"currency"`
	DebitedAt time.Time `json:"debited_at"`
}

// Check returns the first rule that this package would have kept and the event breaks. Both sides of the log ask it.
func (e Opened) Check() error {
	_, invalid := ParseCurrency(string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("opened_at", e.OpenedAt))
}

// Check is [Opened.Check] for a credit.
func (e FundsCredited) Check() error {
	_, invalid := ParseMoney(e.Amount, string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("credited_at", e.CreditedAt))
}

// Check is [Opened.Check] for a debit.
func (e FundsDebited) Check() error {
	_, invalid := ParseMoney(e.Amount, string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("debited_at", e.DebitedAt))
}

// About is the id of the account, and the business time.
func (e Opened) About() (key string, at time.Time) {
	return string(e.AccountID), e.OpenedAt
}

// About is the id of the account, and the business time.
func (e FundsCredited) About() (key string, at time.Time) {
	return string(e.AccountID), e.CreditedAt
}

// About is the id of the account, and the business time.
func (e FundsDebited) About() (key string, at time.Time) {
	return string(e.AccountID), e.DebitedAt
}

func (id ID) check() error {
	_, err := ParseID(string(id))
	return err
}

// The years in which things happen here. A clock outside them is a defect, not a time.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func checkTime(field string, at time.Time) error {
	if at.Before(earliest) || !at.Before(latest) {
		return &Error{CodeInvalidTime, field, "is outside the years 2000 to 2199"}
	}
	return nil
}
