package contract

import (
	"errors"
	"regexp"
	"time"
)

// Money is an amount in the minor unit of its currency: 1999 EUR are 19.99 euros.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Placed reports a new order, whose amount is due. It is the first event of every order.
type Placed struct {
	OrderID string `json:"order_id"`
	Email   string `json:"email"`
	Money
	PlacedAt time.Time `json:"placed_at"`
	PayBy    time.Time `json:"pay_by"` // about when an unpaid order is cancelled
}

// Paid reports a payment of the amount.
type Paid struct {
	OrderID   string `json:"order_id"`
	PaymentID string `json:"payment_id"`
	Money
	PaidAt time.Time `json:"paid_at"`
}

// An order is cancelled for one of these reasons.
const (
	ReasonRequested = "requested"
	ReasonUnpaid    = "unpaid"
)

// Cancelled reports that no payment is due any more.
type Cancelled struct {
	OrderID     string    `json:"order_id"`
	Reason      string    `json:"reason"`
	CancelledAt time.Time `json:"cancelled_at"`
}

// A payment is refunded for one of these reasons.
const (
	RefundOrderCancelled = "order_cancelled"
	RefundPaidAlready    = "paid_already"
	RefundWrongAmount    = "wrong_amount"
)

// Refund reports a payment without use, to be given back whole. It is published once per payment.
type Refund struct {
	OrderID   string `json:"order_id"`
	PaymentID string `json:"payment_id"`
	Money
	Reason string    `json:"reason"`
	DueAt  time.Time `json:"due_at"`
}

// Overdue reports that the time to pay is over. The order may have been paid.
type Overdue struct {
	OrderID string    `json:"order_id"`
	PayBy   time.Time `json:"pay_by"`
}

// Payment reports money for an order. A provider may report it in several events.
type Payment struct {
	PaymentID string `json:"payment_id"`
	OrderID   string `json:"order_id"`
	Money
	CompletedAt time.Time `json:"completed_at"`
}

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ValidID reports whether an id is a UUID in lower case: an id has one spelling.
func ValidID(id string) bool { return canonicalUUID.MatchString(id) }

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !ValidID(id) {
			return errors.New("an id is not a lower-case UUID")
		}
	}
	return nil
}

func (e Placed) Check() error { return checkIDs(e.OrderID) }

func (e Paid) Check() error { return checkIDs(e.OrderID, e.PaymentID) }

func (e Cancelled) Check() error { return checkIDs(e.OrderID) }

func (e Refund) Check() error { return checkIDs(e.OrderID, e.PaymentID) }

func (e Overdue) Check() error { return checkIDs(e.OrderID) }

func (e Payment) Check() error { return checkIDs(e.OrderID, e.PaymentID) }

func (e Placed) About() (key string, at time.Time) { return e.OrderID, e.PlacedAt }

func (e Paid) About() (key string, at time.Time) { return e.OrderID, e.PaidAt }

func (e Cancelled) About() (key string, at time.Time) { return e.OrderID, e.CancelledAt }

func (e Refund) About() (key string, at time.Time) { return e.OrderID, e.DueAt }

func (e Overdue) About() (key string, at time.Time) { return e.OrderID, e.PayBy }

func (e Payment) About() (key string, at time.Time) { return e.PaymentID, e.CompletedAt }
