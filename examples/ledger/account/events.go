package account

import (
	"cmp"
	"time"
)

// These are the payloads on the log; the schemas in contract/events are the contract. A movement has the change and not
// the balance, so a reader needs each of them once, in the order of the versions.

// Opened reports a new account. It is the first event of each.
type Opened struct {
	AccountID ID        `json:"account_id"`
	Currency  Currency  `json:"currency"`
	OpenedAt  time.Time `json:"opened_at"`
}

// FundsCredited reports money that came to an account.
type FundsCredited struct {
	AccountID  ID        `json:"account_id"`
	Amount     int64     `json:"amount"` // minor units
	Currency   Currency  `json:"currency"`
	CreditedAt time.Time `json:"credited_at"`
}

// FundsDebited reports money that left an account.
type FundsDebited struct {
	AccountID ID        `json:"account_id"`
	Amount    int64     `json:"amount"` // minor units
	Currency  Currency  `json:"currency"`
	DebitedAt time.Time `json:"debited_at"`
}

// Check returns the first broken rule, on both sides of the log.
func (e Opened) Check() error {
	_, invalid := ParseCurrency(string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("opened_at", e.OpenedAt))
}

func (e FundsCredited) Check() error {
	_, invalid := ParseMoney(e.Amount, string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("credited_at", e.CreditedAt))
}

func (e FundsDebited) Check() error {
	_, invalid := ParseMoney(e.Amount, string(e.Currency))
	return cmp.Or(e.AccountID.check(), invalid, checkTime("debited_at", e.DebitedAt))
}

func (e Opened) About() (key string, at time.Time) {
	return string(e.AccountID), e.OpenedAt
}

func (e FundsCredited) About() (key string, at time.Time) {
	return string(e.AccountID), e.CreditedAt
}

func (e FundsDebited) About() (key string, at time.Time) {
	return string(e.AccountID), e.DebitedAt
}

func (id ID) check() error {
	_, err := ParseID(string(id))
	return err
}

// A clock outside these years is a defect.
func checkTime(field string, at time.Time) error {
	if year := at.UTC().Year(); year < 2000 || year > 2199 {
		return &Error{CodeInvalidTime, field, "is outside the years 2000 to 2199"}
	}
	return nil
}
