package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

type saysPermanent bool

func (s saysPermanent) Error() string   { return "says so itself" }
func (s saysPermanent) Permanent() bool { return bool(s) }

type unknownOutcome struct{ error }

func (unknownOutcome) OutcomeUnknown() bool { return true }

type notSent struct{ error }

func (notSent) SafeToRetry() bool { return true }

func sqlState(code string) error { return &pgconn.PgError{Code: code} }

var (
	refused    = sqlState("23514")
	shutdown   = sqlState("57P01")
	slow       = sqlState("57014")
	errUnknown = errors.New("unknown")
)

func TestMarks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want failure.Class
		code string
	}{
		"marked by its author": {failure.AsPermanent(errUnknown), failure.Permanent, "marked_permanent"},
		"marked, then wrapped": {
			fmt.Errorf("a: %w", failure.AsPermanent(errUnknown)), failure.Permanent, "marked_permanent",
		},
		"marked around a transient one": {failure.AsPermanent(shutdown), failure.Permanent, "marked_permanent"},
		"marked as passing":             {failure.AsTransient(refused), failure.Transient, "marked_transient"},
		"the outer of two marks": {
			failure.AsTransient(fmt.Errorf("a: %w", failure.AsPermanent(errUnknown))), failure.Transient, "marked_transient",
		},
		"says that it is permanent":      {saysPermanent(true), failure.Permanent, "says_permanent"},
		"says that it is not":            {saysPermanent(false), failure.Unknown, failure.CodeUnknown},
		"says that it may have happened": {unknownOutcome{errUnknown}, failure.Transient, "outcome_unknown"},
		"nothing is known":               {errUnknown, failure.Unknown, failure.CodeUnknown},
		"wrapped":                        {fmt.Errorf("a: %w", shutdown), failure.Transient, "sql_57P01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, failure.Verdict{Class: row.want, Code: row.code}, failure.Examine(row.err))
			require.Equal(t, row.want, failure.Classify(row.err))
		})
	}
	require.NoError(t, failure.AsPermanent(nil))
	require.NoError(t, failure.AsTransient(nil))
	require.ErrorIs(t, failure.AsPermanent(errUnknown), errUnknown)
}

func TestJoinedErrors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		parts []error
		want  string
	}{
		"a refused row and a rollback that lost its connection": {[]error{refused, shutdown}, "sql_57P01"},
		"a permanent mark and a lost connection":                {[]error{failure.AsPermanent(slow), shutdown}, "sql_57P01"},
		"a stop and a lost connection":                          {[]error{context.Canceled, shutdown}, "context_canceled"},
		"a stop and a refused row":                              {[]error{context.Canceled, refused}, "context_canceled"},
		"a refused row and one too slow":                        {[]error{refused, slow}, "sql_23514"},
		"an unknown one and one too slow":                       {[]error{errUnknown, slow}, "sql_57014"},
		"an unknown one and a lost connection":                  {[]error{errUnknown, shutdown}, "sql_57P01"},
		"two unknown ones":                                      {[]error{errUnknown, errUnknown}, failure.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := row.parts[0], row.parts[1]
			require.Equal(t, row.want, failure.Examine(errors.Join(a, b)).Code)
			require.Equal(t, row.want, failure.Examine(errors.Join(b, nil, a)).Code)
			require.Equal(t, row.want, failure.Examine(fmt.Errorf("x: %w, then %w", a, b)).Code)
			require.Equal(t, row.want, failure.Examine(fmt.Errorf("y: %w", errors.Join(b, fmt.Errorf("z: %w", a)))).Code)
		})
	}
}
