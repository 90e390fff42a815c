package account

// Code is the stable name of a rule that was broken. Clients and dead letters rely on it; the message may change.
type Code string

// The codes of an [Error].
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

// Error is a broken rule. It is the client's to fix, and never repeats what the client sent.
type Error struct {
	Code    Code
	Field   string // the input that it is about
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Field + ": " + e.Message }

// ErrorCode is the code as text: dead letters of events that break the rule are found under it.
func (e *Error) ErrorCode() string { return string(e.Code) }

// Is makes errors.Is compare codes, so that a caller can test for a rule without knowing the message.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}
