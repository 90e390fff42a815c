package operate

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// The stable codes of an [Error].
const (
	CodeNotFound        = "not_found"
	CodeNotWaiting      = "not_waiting"      // it is settled: nothing changes any more
	CodeMissingOperator = "missing_operator" // a replay says who makes it
	CodeMissingFilter   = "missing_filter"   // a change of everything at once is not offered
	CodeInvalidFilter   = "invalid_filter"
	CodeNothingToEdit   = "nothing_to_edit"
	CodeInvalidHeaders  = "invalid_headers"
)

// An Error is a refusal: the caller asked for what cannot be done, and nothing was changed.
type Error struct {
	Code   string
	Detail string
}

func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// ErrorCode is the stable code.
func (e *Error) ErrorCode() string { return e.Code }

// refusedContent says that the database does not take a value: too long, not text, out of range (class 22), against a
// constraint (class 23), or more than an index holds (class 54).
func refusedContent(err error) (detail string, is bool) {
	pgErr, is := errors.AsType[*pgconn.PgError](err)
	if !is || !slices.Contains([]string{"22", "23", "54"}, pgErr.Code[:min(2, len(pgErr.Code))]) {
		return "", false
	}
	return pgErr.Message, true
}
