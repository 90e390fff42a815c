package domain

import "fmt"

// Code is the stable name of a rule that was broken. Clients and dead letters rely on it; the message may change.
type Code string

// The codes of an [Error].
const (
	CodeInvalidEmail    Code = "invalid_email"
	CodeInvalidName     Code = "invalid_name"
	CodeInvalidUserID   Code = "invalid_user_id"
	CodeUserNotFound    Code = "user_not_found"
	CodeEmailTaken      Code = "email_taken"
	CodeVersionMismatch Code = "version_mismatch"
	CodeTokenInvalid    Code = "token_invalid"
	CodeTokenExpired    Code = "token_expired"
)

// Error is a broken rule. It is the client's to fix; it never wraps a technical failure and never repeats what the
// client sent, which may be personal.
type Error struct {
	Code    Code
	Field   string // the input it is about, empty when it is about none
	Message string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Message)
}

// Is makes errors.Is compare codes, so that a caller can test for a rule without knowing the message.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}
