package admin

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	deadletters "example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/web"
)

const codeInvalid web.Code = "invalid_value"

var (
	errOff = problem(http.StatusForbidden, "operations_off",
		"This service was started without ADMIN_TOKEN, so its operations are off.")
	errUnauthorized = problem(http.StatusUnauthorized, "unauthorized",
		"The bearer token is missing or is not this service's ADMIN_TOKEN.")
	errNoMails    = problem(http.StatusNotFound, "no_mails", "This service sends no mails.")
	errNoConsumer = problem(http.StatusNotFound, "consumer_not_found", "This service has no consumer of that name.")

	errQuery = problem(http.StatusBadRequest, web.CodeInvalidParameter,
		"No operation takes parameters in its query: they are members of the body.")
	errNotScheduled = problem(http.StatusNotFound, "not_scheduled", "No event is scheduled under this name (any more).")
)

var sentinels = []struct {
	err    error
	status int
	code   web.Code
	detail string
}{
	{inbox.ErrPaused, http.StatusConflict, "consumer_paused", "The consumer is paused already."},
	{inbox.ErrNotPaused, http.StatusConflict, "consumer_not_paused", "The consumer is not paused."},
	{relay.ErrPaused, http.StatusConflict, "relay_paused", "The relay is paused already."},
	{relay.ErrNotPaused, http.StatusConflict, "relay_not_paused", "The relay is not paused."},
	{relay.ErrNotRefused, http.StatusNotFound, "relay_not_refused", "The relay refuses nothing (any more)."},
	{
		relay.ErrOtherRefusal, http.StatusConflict, "other_refusal",
		"The relay refuses for another reason; the outbox's status has its code.",
	},
	{relay.ErrNotParked, http.StatusNotFound, "not_parked", "This key, or this event, is not parked (any more)."},
	{
		relay.ErrEmptySelection, http.StatusUnprocessableEntity, "nothing_selected",
		"Nothing is selected: give at least one bound, such as a position, a time or a key.",
	},
}

const badText = "22021" // the database cannot compare it

// closed are the codes of a request that outlived the drain.
var closed = []string{failure.CodePoolClosed, "kafka_client_closed"}

// mapError returns nil for a defect.
func mapError(service string, err error) *web.Error {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &web.Error{Status: s.status, Code: s.code, Detail: s.detail, Cause: err}
		}
	}
	if refused, is := errors.AsType[*deadletters.Error](err); is {
		return letterError(service, refused)
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == badText {
		return &web.Error{
			Status: http.StatusUnprocessableEntity, Code: codeInvalid, Cause: err,
			Detail: "A text holds a zero byte or is not UTF-8; nothing that is kept here does.",
		}
	}
	unavailable := &web.Error{
		Status: http.StatusServiceUnavailable, Code: web.CodeUnavailable, RetryAfter: time.Second, Cause: err,
		Detail: "The service cannot reach its database or its broker.",
	}
	switch known := failure.Examine(err); {
	case slices.Contains(closed, known.Code):
		unavailable.Code, unavailable.Detail = web.CodeShuttingDown, "This instance is shutting down."
	case known.Class != failure.Transient:
		return nil
	}
	return unavailable
}

func problem(status int, code web.Code, detail string) *web.Error {
	return &web.Error{Status: status, Code: code, Detail: detail}
}

func invalid(member, detail string) error {
	return web.MemberError(http.StatusUnprocessableEntity, codeInvalid, member, detail)
}

// refusals without an entry are 422.
var refusals = map[string]int{
	deadletters.CodeNotFound:    http.StatusNotFound,
	deadletters.CodeNotWaiting:  http.StatusConflict,
	deadletters.CodeEditedSince: http.StatusConflict,
}

func letterError(service string, refused *deadletters.Error) *web.Error {
	status := cmp.Or(refusals[refused.Code], http.StatusUnprocessableEntity)
	detail := withService(service, refused.Detail)
	detail = strings.ToUpper(detail[:1]) + detail[1:] + "."
	return &web.Error{Status: status, Code: web.Code(refused.Code), Detail: detail, Cause: refused}
}

var letterID = regexp.MustCompile(`\bdead letter (\d+)\b`)

// withService adds the service to the ids of dead letters: each service numbers its own.
func withService(service, text string) string {
	return letterID.ReplaceAllString(text, "dead letter "+service+"/$1")
}
