package ledger

import (
	"errors"
	"net/http"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/web"
)

// statuses gives each broken rule its HTTP status. A missing code would be a defect: 500.
var statuses = map[account.Code]int{
	account.CodeInvalidID:           http.StatusBadRequest,
	account.CodeNotFound:            http.StatusNotFound,
	account.CodeVersionMismatch:     http.StatusConflict,
	account.CodeInvalidAmount:       http.StatusUnprocessableEntity,
	account.CodeUnsupportedCurrency: http.StatusUnprocessableEntity,
	account.CodeCurrencyMismatch:    http.StatusUnprocessableEntity,
	account.CodeInsufficientFunds:   http.StatusUnprocessableEntity,
	account.CodeBalanceTooLarge:     http.StatusUnprocessableEntity,
}

// mapError returns the error for a client. nil: the client must not see it.
func mapError(err error) *web.Error {
	broken, is := errors.AsType[*account.Error](err)
	if !is {
		return command.Problem(err)
	}
	status, known := statuses[broken.Code]
	if !known {
		return nil
	}
	answer := web.MemberError(status, web.Code(broken.Code), broken.Field, broken.Message)
	if broken.Field == "id" {
		answer.Fields[0].Pointer, answer.Fields[0].Parameter = "", "id"
	}
	return answer
}
