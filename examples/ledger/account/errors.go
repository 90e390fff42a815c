package account

// Code is the stable name of a broken rule, for clients and dead letters. The message may change.
type Code string

const (
	CodeInvalidID           Code = "invalid_account_id"
	CodeInvalidAmount       Code = "invalid_amount"
	CodeUnsupportedCurrency Code = "unsupported_currency"
	CodeCurrencyMismatch    Code = "currency_mismatch"
	CodeInsufficientFunds   Code = "insufficient_funds"
	CodeBalanceTooLarge     Code = "balance_too_large"
	CodeVersionMismatch     Code = "version_mismatch"
	CodeNotFound            Code = "account_not_found"
	CodeInvalidTime         Code = "invalid_time" // of an event: no client gives one
)

// Error is a broken rule. It never repeats the client's input.
type Error struct {
	Code    Code
	Field   string // the input that it is about
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Field + ": " + e.Message }

func (e *Error) ErrorCode() string { return string(e.Code) }

func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}
