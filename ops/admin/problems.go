package admin

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox/pause"
	kafkaadmin "example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/engine/verify"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// The codes of this API beyond those of package web.
const (
	codeOff          web.Code = "operations_off"
	codeUnauthorized web.Code = "unauthorized"
	codeNotParked    web.Code = "not_parked"
	codeNotScheduled web.Code = "not_scheduled"
	codeNoSelection  web.Code = "nothing_selected"
	codeRestoring    web.Code = "restoring"
	codeInvalid      web.Code = "invalid_value"
	codeNoMails      web.Code = "no_mails"

	codeWrongService     web.Code = "wrong_service"
	codeWrongEnvironment web.Code = "wrong_environment"
	codePartitionCount   web.Code = "partition_count"
	codeNotDrained       web.Code = "not_drained"
	codeUnchanged        web.Code = "partitions_unchanged"
	codeConsuming        web.Code = "consuming"
	codeVerifying        web.Code = "verifying"
	codeStandby          web.Code = "standby"
	codeNoConsumer       web.Code = "consumer_not_found"
	codePaused           web.Code = "consumer_paused"
	codeNotPaused        web.Code = "consumer_not_paused"
)

var (
	errOff = &web.Error{
		Status: http.StatusForbidden, Code: codeOff,
		Detail: "This service was started without ADMIN_TOKEN, so its operations are off.",
	}
	errUnauthorized = &web.Error{
		Status: http.StatusUnauthorized, Code: codeUnauthorized,
		Detail: "The bearer token is missing or is not this service's ADMIN_TOKEN.",
	}
)

// sentinels are errors of the packages below, and what a caller is told.
var sentinels = []struct {
	err    error
	status int
	code   web.Code
	detail string
}{
	{pause.ErrPaused, http.StatusConflict, codePaused, "The consumer is paused already."},
	{pause.ErrNotPaused, http.StatusConflict, codeNotPaused, "The consumer is not paused."},
	{operate.ErrNotParked, http.StatusNotFound, codeNotParked, "This key, or this event, is not parked (any more)."},
	{
		operate.ErrNotScheduled, http.StatusNotFound, codeNotScheduled,
		"No event is scheduled under this name (any more).",
	},
	{
		operate.ErrEmptySelection, http.StatusUnprocessableEntity, codeNoSelection,
		"Nothing is selected: give at least one bound, such as a position, a time or a key.",
	},
	{
		operate.ErrPartitionsUnchanged, http.StatusNotFound, codeUnchanged,
		"The topic's keys are spread over that many partitions already, or the relay has never seen the topic.",
	},
	{
		kafkaadmin.ErrGroupActive, http.StatusConflict, codeConsuming,
		"An instance of the service still consumes, so its offsets cannot go back. Stop all instances and start them " +
			"again: they wait for this before they consume. A stopped one may count for KAFKA_SESSION_TIMEOUT.",
	},
	{
		eventing.ErrVerifying, http.StatusConflict, codeVerifying,
		"A verification of this service is under way; ask again when it is done.",
	},
	{
		verify.ErrRestoring, http.StatusConflict, codeRestoring,
		"The database was restored: nothing can be compared before that is confirmed and published.",
	},
	{
		verify.ErrStandby, http.StatusConflict, codeStandby,
		"The service's database is a standby, which may be behind what was published.",
	},
	{
		verify.ErrPartitions, http.StatusConflict, codePartitionCount,
		"A topic was given more partitions, or was made anew, while it was read; ask again.",
	},
	{
		operate.ErrRestoring, http.StatusConflict, codeRestoring,
		"The outbox was restored and the relay still publishes what the restore left; ask again when that is done.",
	},
}

// badText is how the database refuses a text that it cannot even compare with its own. All text that it gets from here
// is the caller's.
const badText = "22021"

// closed are the codes of a request that outlived the drain: what it works with closed under it.
var closed = []string{"postgres_pool_closed", "kafka_client_closed"}

// mapError says what an error of the packages below is to a caller of the service. nil means a defect.
func mapError(service string, err error) *web.Error {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &web.Error{Status: s.status, Code: s.code, Detail: s.detail, Cause: err}
		}
	}
	if refused := letterError(service, err); refused != nil {
		return refused
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == badText {
		return &web.Error{
			Status: http.StatusUnprocessableEntity, Code: codeInvalid, Cause: err,
			Detail: "A text holds a zero byte or is not UTF-8; nothing that is kept here does.",
		}
	}
	known := failure.Examine(err)
	if slices.Contains(closed, known.Code) {
		return &web.Error{
			Status: http.StatusServiceUnavailable, Code: web.CodeShuttingDown, RetryAfter: time.Second, Cause: err,
			Detail: "This instance is shutting down.",
		}
	}
	if known.Class == failure.Transient {
		return &web.Error{
			Status: http.StatusServiceUnavailable, Code: web.CodeUnavailable, RetryAfter: time.Second, Cause: err,
			Detail: "The service cannot reach its database or its broker.",
		}
	}
	return nil
}

// parameterError translates what the generated code finds wrong with a parameter.
func parameterError(err error) error {
	var param *adminapi.RequiredParamError
	var format *adminapi.InvalidParamFormatError
	var many *adminapi.TooManyValuesForParamError
	switch {
	case errors.As(err, &param):
		return web.ParameterError(http.StatusBadRequest, web.CodeMissingParameter, param.ParamName, "is missing")
	case errors.As(err, &many):
		return invalidParameter(many.ParamName, "is there more than once")
	case errors.As(err, &format):
		return invalidParameter(format.ParamName, "is malformed")
	}
	return invalidParameter("query", "is malformed")
}

func invalidParameter(name, detail string) error {
	return web.ParameterError(http.StatusBadRequest, web.CodeInvalidParameter, name, detail)
}

// invalid says that a member of the body has a value that cannot be used.
func invalid(member, detail string) error {
	return &web.Error{
		Status: http.StatusUnprocessableEntity, Code: codeInvalid, Detail: "The member " + member + " " + detail + ".",
		Fields: []web.Field{{Code: codeInvalid, Pointer: "#/" + member, Detail: detail}},
	}
}
