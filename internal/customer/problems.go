package customer

import (
	"errors"
	"net/http"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/web"
)

// The codes of this API beyond those of web, command and domain.
const (
	codeSignupsUsedUp  web.Code = "signups_used_up"
	codeKeyUnsupported web.Code = "idempotency_key_unsupported"
)

// refuseIdempotencyKey is for requests that expected_version or a token makes safe to repeat.
func refuseIdempotencyKey(r *http.Request) error {
	if len(r.Header.Values("Idempotency-Key")) == 0 {
		return nil
	}
	problem := web.ParameterError(http.StatusBadRequest, codeKeyUnsupported, "Idempotency-Key",
		"is not supported by this request")
	problem.Detail = "This request may be repeated without the header Idempotency-Key. Leave the header out."
	return problem
}

// A code that is missing here would be a defect: 500.
var statuses = map[domain.Code]int{
	domain.CodeInvalidUserID:   http.StatusBadRequest,
	domain.CodeTokenInvalid:    http.StatusUnprocessableEntity,
	domain.CodeUserNotFound:    http.StatusNotFound,
	domain.CodeEmailTaken:      http.StatusConflict,
	domain.CodeVersionMismatch: http.StatusConflict,
	domain.CodeTokenExpired:    http.StatusGone,
	domain.CodeInvalidEmail:    http.StatusUnprocessableEntity,
	domain.CodeInvalidName:     http.StatusUnprocessableEntity,
}

// mapError returns nil for an internal error.
func mapError(err error) *web.Error {
	if broken, is := errors.AsType[*domain.Error](err); is {
		return ruleError(broken)
	}
	if usedUp, is := errors.AsType[*allowanceError](err); is {
		return allowanceProblem(usedUp)
	}
	return command.Problem(err)
}

func allowanceProblem(e *allowanceError) *web.Error {
	answer := &web.Error{
		Status: http.StatusTooManyRequests, Code: codeSignupsUsedUp, RetryAfter: e.wait,
		Detail: "Too many sign-ups for this client.",
	}
	if e.of == "email" {
		answer.Detail = "Too many sign-ups for this mailbox."
		answer.Fields = []web.Field{{Code: codeSignupsUsedUp, Pointer: "#/email", Detail: "has had too many sign-ups"}}
	}
	return answer
}

func ruleError(broken *domain.Error) *web.Error {
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

func parameterError(err error) error {
	if missing, is := errors.AsType[*openapi.RequiredParamError](err); is {
		return web.ParameterError(http.StatusBadRequest, web.CodeMissingParameter, missing.ParamName, "is missing")
	}
	name, why := "query", "is malformed"
	if format, is := errors.AsType[*openapi.InvalidParamFormatError](err); is {
		name = format.ParamName
	}
	if many, is := errors.AsType[*openapi.TooManyValuesForParamError](err); is {
		name, why = many.ParamName, "is there more than once"
	}
	if name == "Idempotency-Key" { // it has its own code
		return web.InvalidIdempotencyKey()
	}
	return web.ParameterError(http.StatusBadRequest, web.CodeInvalidParameter, name, why)
}
