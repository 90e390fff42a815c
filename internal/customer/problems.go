package customer

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

// Codes of this API beyond those of package web and of the domain's rules.
const (
	codeKeyInFlight    web.Code = "idempotency_key_in_flight"
	codeKeyReused      web.Code = "idempotency_key_reused"
	codeOutcomeUnknown web.Code = "outcome_unknown"
	codeSignupsUsedUp  web.Code = "signups_used_up"
)

// statuses gives each broken rule its HTTP status. A code that is missing here would be a defect: 500.
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

// retrySoon is what a client should wait when waiting is all it can do.
const retrySoon = time.Second

// tooSlow are the codes with which the database ends what takes too long: the statement timeout, for one that waited
// for a lock or a slow disk, and the timeouts of a transaction whose process was stopped meanwhile. To a consumer they
// are unknown, since a handler may be to blame; here nobody is, and a repetition may find it faster.
var tooSlow = []string{"sql_57014", "sql_25P03", "sql_25P04"}

// mapError says what each error of the service is to a client. nil means that it is not the client's to know.
func mapError(err error) *web.Error {
	var broken *domain.Error
	var usedUp *allowanceError
	known := failure.Examine(err)
	switch {
	case errors.As(err, &broken):
		return ruleError(broken)
	case errors.Is(err, errKeyInFlight):
		problem := web.ParameterError(http.StatusConflict, codeKeyInFlight, "Idempotency-Key",
			"is in use by a request under way")
		problem.RetryAfter = retrySoon
		return problem
	case errors.Is(err, errKeyReused):
		return web.ParameterError(http.StatusUnprocessableEntity, codeKeyReused, "Idempotency-Key",
			"was used for another request")
	case errors.As(err, &usedUp):
		return allowanceProblem(usedUp)
	case errors.Is(err, errOutcomeUnknown):
		return &web.Error{
			Status: http.StatusServiceUnavailable, Code: codeOutcomeUnknown, RetryAfter: retrySoon, Cause: err,
			Detail: "The request may or may not have taken effect. Repeat it as it was to find out.",
		}
	case slices.Contains(tooSlow, known.Code):
		return &web.Error{
			Status: http.StatusServiceUnavailable, Code: web.CodeTimeout, RetryAfter: retrySoon, Cause: err,
			Detail: "The database took too long. Nothing has changed.",
		}
	case known.Class == failure.Transient:
		return &web.Error{
			Status: http.StatusServiceUnavailable, Code: web.CodeUnavailable, RetryAfter: retrySoon, Cause: err,
			Detail: "The service cannot reach its database. Nothing has changed.",
		}
	}
	return nil
}

func allowanceProblem(e *allowanceError) *web.Error {
	answer := &web.Error{
		Status: http.StatusTooManyRequests, Code: codeSignupsUsedUp, RetryAfter: e.wait,
		Detail: "Too many sign-ups for this " + e.subject() + ".",
	}
	if e.field != "" {
		answer.Fields = []web.Field{{
			Code: codeSignupsUsedUp, Pointer: "#/" + e.field, Detail: "has had too many sign-ups",
		}}
	}
	return answer
}

// ruleError answers a broken rule. A rule about a field of the body points at it.
func ruleError(broken *domain.Error) *web.Error {
	status, known := statuses[broken.Code]
	if !known {
		return nil
	}
	answer := &web.Error{
		Status: status, Code: web.Code(broken.Code), Detail: "The " + broken.Field + " " + broken.Message + ".",
	}
	field := web.Field{Code: web.Code(broken.Code), Detail: broken.Message}
	if broken.Field == "id" {
		field.Parameter = broken.Field
	} else {
		field.Pointer = "#/" + broken.Field
	}
	answer.Fields = []web.Field{field}
	return answer
}

// invalidInput joins what is wrong with several fields into one answer, which has the first one's code.
func invalidInput(errs ...error) error {
	var first *web.Error
	for _, err := range errs {
		var broken *domain.Error
		if !errors.As(err, &broken) {
			continue
		}
		answer := ruleError(broken)
		if first == nil {
			first = answer
			continue
		}
		first.Fields = append(first.Fields, answer.Fields...)
	}
	if first == nil {
		return nil
	}
	return first
}

// parameterError translates what the generated code finds wrong with a parameter.
func parameterError(err error) error {
	var header *openapi.RequiredHeaderError
	var param *openapi.RequiredParamError
	var format *openapi.InvalidParamFormatError
	var many *openapi.TooManyValuesForParamError
	switch {
	case errors.As(err, &header):
		return web.ParameterError(http.StatusBadRequest, web.CodeMissingParameter, header.ParamName, "is missing")
	case errors.As(err, &param):
		return web.ParameterError(http.StatusBadRequest, web.CodeMissingParameter, param.ParamName, "is missing")
	case errors.As(err, &many):
		return malformedParameter(many.ParamName, "is there more than once")
	case errors.As(err, &format):
		return malformedParameter(format.ParamName, "is malformed")
	}
	return web.ParameterError(http.StatusBadRequest, web.CodeInvalidParameter, "query", "is malformed")
}

// malformedParameter gives the idempotency key a code and an explanation of its own.
func malformedParameter(name, why string) error {
	if name == "Idempotency-Key" {
		return web.InvalidIdempotencyKey(why)
	}
	return web.ParameterError(http.StatusBadRequest, web.CodeInvalidParameter, name, why)
}
