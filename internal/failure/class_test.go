package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

type saysPermanent bool

func (s saysPermanent) Error() string   { return "says so itself" }
func (s saysPermanent) Permanent() bool { return bool(s) }

func sqlState(code string) error { return &pgconn.PgError{Code: code} }

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want failure.Class
	}{
		"marked by its author":             {failure.AsPermanent(errors.New("x")), failure.Permanent},
		"marked, then wrapped":             {fmt.Errorf("a: %w", failure.AsPermanent(errors.New("x"))), failure.Permanent},
		"marked around a transient one":    {failure.AsPermanent(sqlState("57P01")), failure.Permanent},
		"marked as passing":                {failure.AsTransient(sqlState("23514")), failure.Transient},
		"says that it is permanent":        {saysPermanent(true), failure.Permanent},
		"says that it is not":              {saysPermanent(false), failure.Unknown},
		"anything else":                    {errors.New("x"), failure.Unknown},
		"cancelled":                        {context.Canceled, failure.Cancelled},
		"cancelled, wrapped":               {fmt.Errorf("query: %w", context.Canceled), failure.Cancelled},
		"deadline":                         {context.DeadlineExceeded, failure.Unknown},
		"serialization failure":            {sqlState("40001"), failure.Transient},
		"deadlock":                         {sqlState("40P01"), failure.Transient},
		"lock timeout":                     {sqlState("55P03"), failure.Transient},
		"statement timeout":                {sqlState("57014"), failure.Unknown},
		"connection exception":             {sqlState("08006"), failure.Transient},
		"too many connections":             {sqlState("53300"), failure.Transient},
		"disk full":                        {sqlState("53100"), failure.Transient},
		"admin shutdown":                   {sqlState("57P01"), failure.Transient},
		"crash shutdown":                   {sqlState("57P02"), failure.Transient},
		"cannot connect now":               {sqlState("57P03"), failure.Transient},
		"io error":                         {sqlState("58030"), failure.Transient},
		"untranslatable character":         {sqlState("22P05"), failure.Permanent},
		"check violation":                  {sqlState("23514"), failure.Permanent},
		"undefined table":                  {sqlState("42P01"), failure.Unknown},
		"raised by a function":             {sqlState("P0001"), failure.Unknown},
		"a state that is none":             {sqlState(""), failure.Unknown},
		"connection refused":               {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, failure.Transient},
		"connection reset":                 {fmt.Errorf("read: %w", syscall.ECONNRESET), failure.Transient},
		"end of stream":                    {io.ErrUnexpectedEOF, failure.Transient},
		"transaction ended by the handler": {pgx.ErrTxClosed, failure.Unknown},
		"no broker":                        {sarama.ErrOutOfBrokers, failure.Transient},
		"broker is late":                   {sarama.ErrRequestTimedOut, failure.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, failure.Classify(row.err))
		})
	}
}

func TestAsPermanentKeepsTheChain(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	require.ErrorIs(t, failure.AsPermanent(cause), cause)
	require.NoError(t, failure.AsPermanent(nil))
}
