package schema

import "fmt"

// Code names one way in which an event breaks the contract. The names are stable: dead letters are grouped by them.
type Code string

// The codes of an [Error], beside those that rules bring; see [Ruled].
const (
	CodeUnknownType     Code = "unknown_type"
	CodeInvalidJSON     Code = "invalid_json"
	CodeSchemaViolation Code = "schema_violation"
	CodeSubjectMismatch Code = "subject_mismatch" // the payload is about another aggregate than the envelope
)

// Error says how an event breaks the contract. It is permanent: the same bytes will always break it. Its text names
// places and rules, never values, which may be personal.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("check event: %s: %s", e.Code, e.Detail) }

// Permanent reports true: to try again cannot help.
func (e *Error) Permanent() bool { return true }

// ErrorCode returns the code as text, for callers that sort errors without importing this package.
func (e *Error) ErrorCode() string { return string(e.Code) }
