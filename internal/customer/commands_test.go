package customer

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/web"
)

func (b *bundle) lock(t *testing.T, id domain.UserID) (release func()) {
	t.Helper()
	holder, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), `select from users where id = $1 for update`, string(id))
	require.NoError(t, err)
	return func() { require.NoError(t, holder.Rollback(t.Context())) }
}

func TestACommandThatWaitsTooLongGivesUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	defer b.lock(t, id)()
	b.commands.Timeout = 200 * time.Millisecond
	began := time.Now()
	a := b.rename(t, id, "Countess", 1)
	require.Less(t, time.Since(began), 30*time.Second, "the request's own time is a minute")
	require.Equal(t, http.StatusServiceUnavailable, a.Status, string(a.Body))
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

func TestWhatTheServiceAnswersToItsErrors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err    error
		status int
		code   web.Code
	}{
		"key in flight":   {command.ErrKeyInFlight, http.StatusConflict, command.CodeKeyInFlight},
		"key reused":      {command.ErrKeyReused, http.StatusUnprocessableEntity, command.CodeKeyReused},
		"outcome unknown": {command.ErrOutcomeUnknown, http.StatusServiceUnavailable, command.CodeOutcomeUnknown},
		"too slow":        {&pgconn.PgError{Code: "57014"}, http.StatusServiceUnavailable, web.CodeTimeout},
		"left alone":      {&pgconn.PgError{Code: "25P03"}, http.StatusServiceUnavailable, web.CodeTimeout},
		"database down":   {&pgconn.PgError{Code: "57P01"}, http.StatusServiceUnavailable, web.CodeUnavailable},
		"pool closed":     {errors.New("closed pool"), http.StatusServiceUnavailable, web.CodeShuttingDown},
		"email taken": {
			&domain.Error{Code: domain.CodeEmailTaken, Field: "email", Message: "m"}, http.StatusConflict, "email_taken",
		},
	} {
		answer := mapError(row.err)
		require.NotNil(t, answer, name)
		require.Equal(t, row.status, answer.Status, name)
		require.Equal(t, row.code, answer.Code, name)
	}
	for name, err := range map[string]error{
		"a defect":        errors.New("x"),
		"a constraint":    &pgconn.PgError{Code: "23514"},
		"a missing table": &pgconn.PgError{Code: "42P01"},
	} {
		require.Nil(t, mapError(err), name)
	}
}

func TestWhatTheGeneratedCodeFindsWrong(t *testing.T) {
	t.Parallel()
	const key = "Idempotency-Key"
	for _, row := range []struct {
		err       error
		code      web.Code
		parameter string
	}{
		{&openapi.RequiredParamError{ParamName: "token"}, web.CodeMissingParameter, "token"},
		{&openapi.TooManyValuesForParamError{ParamName: key, Count: 2}, web.CodeIdempotencyKeyInvalid, key},
		{&openapi.TooManyValuesForParamError{ParamName: "token", Count: 2}, web.CodeInvalidParameter, "token"},
		{&openapi.InvalidParamFormatError{ParamName: key}, web.CodeIdempotencyKeyInvalid, key},
		{&openapi.InvalidParamFormatError{ParamName: "id"}, web.CodeInvalidParameter, "id"},
		{errors.New("another"), web.CodeInvalidParameter, "query"},
	} {
		var answer *web.Error
		require.ErrorAs(t, parameterError(row.err), &answer)
		require.Equal(t, http.StatusBadRequest, answer.Status)
		require.Equal(t, row.code, answer.Code)
		require.Equal(t, row.parameter, answer.Fields[0].Parameter)
	}
}

func TestInvalidInputIsAnsweredTogether(t *testing.T) {
	t.Parallel()
	require.Nil(t, invalidInput(nil, nil))
	_, emailErr := domain.ParseEmail("x")
	_, nameErr := domain.ParseName("")
	var answer *web.Error
	require.ErrorAs(t, invalidInput(emailErr, nameErr), &answer)
	require.Equal(t, web.Code("invalid_email"), answer.Code, "the first one's")
	require.Len(t, answer.Fields, 2)
	require.Equal(t, "#/email", answer.Fields[0].Pointer)
	require.Equal(t, "#/name", answer.Fields[1].Pointer)
}
