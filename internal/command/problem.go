package command

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/web"
)

// The codes of [Problem] that package web does not have.
const (
	CodeKeyInFlight    web.Code = "idempotency_key_in_flight"
	CodeKeyReused      web.Code = "idempotency_key_reused"
	CodeOutcomeUnknown web.Code = "outcome_unknown"
	// CodeVersionMismatch answers a lost race, or a service's own check of an expected version.
	CodeVersionMismatch web.Code = "version_mismatch"
)

const retrySoon = time.Second

// tooSlow are timeouts of statements and transactions.
var tooSlow = []string{"sql_57014", "sql_25P03", "sql_25P04"}

// Problem returns the client's view of errors of this package and the database; nil for all others.
func Problem(err error) *web.Error {
	known := failure.Examine(err)
	switch {
	case errors.Is(err, ErrKeyInFlight):
		problem := web.ParameterError(http.StatusConflict, CodeKeyInFlight, "Idempotency-Key",
			"is in use by a request under way")
		problem.RetryAfter = retrySoon
		return problem
	case errors.Is(err, ErrKeyReused):
		return web.ParameterError(http.StatusUnprocessableEntity, CodeKeyReused, "Idempotency-Key",
			"was used for another request")
	case errors.Is(err, ErrOutcomeUnknown):
		return unavailable(err, CodeOutcomeUnknown,
			"The request may or may not have taken effect. Repeat it as it was to find out.")
	case errors.Is(err, outbox.ErrVersionConflict):
		return &web.Error{
			Status: http.StatusConflict, Code: CodeVersionMismatch, Cause: err,
			Detail: "Another request changed it meanwhile. This one has changed nothing: read again, and decide again.",
		}
	case slices.Contains(tooSlow, known.Code):
		return unavailable(err, web.CodeTimeout, "The database took too long. Nothing has changed.")
	case known.Code == failure.CodePoolClosed: // the request outlived the drain
		return unavailable(err, web.CodeShuttingDown, "This instance is shutting down. Nothing has changed.")
	case known.Class == failure.Transient:
		return unavailable(err, web.CodeUnavailable, "The database cannot take this now. Nothing has changed.")
	}
	return nil
}

func unavailable(err error, code web.Code, detail string) *web.Error {
	return &web.Error{
		Status: http.StatusServiceUnavailable, Code: code, RetryAfter: retrySoon, Cause: err, Detail: detail,
	}
}
