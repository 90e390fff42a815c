package failure_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

const (
	p = failure.Permanent
	r = failure.Transient
	u = failure.Unknown
	c = failure.Cancelled
)

type sample struct {
	code string
	want failure.Class
	err  error
}

func samples(t *testing.T) []sample {
	t.Helper()
	var list []sample
	add := func(code string, want failure.Class, err error) { list = append(list, sample{code, want, err}) }
	eachWord := func(want failure.Class, words string, err func(word string) (string, error)) {
		for word := range strings.FieldsSeq(words) {
			code, made := err(word)
			add(code, want, made)
		}
	}
	sql := func(state string) (string, error) { return "sql_" + state, sqlState(state) }
	eachWord(r, `08000 08003 08006 08001 08004 08007 40000 40001 40P01 40003 55P03 55006 53000 53100 53200 53300 53400
		57000 57P01 57P02 57P03 57P04 57P05 58000 58030 58P01 F0000 25006 26000 72000 28000 28P01 3D000`, sql)
	eachWord(p, `22000 22001 22003 22021 22P02 22P05 23000 23502 23503 23505 23514 23P01 40002 44000 54000
		54001 54011`, sql)
	eachWord(u, `08P01 57014 25P02 25P03 25P04`, sql)

	smtp := func(answer string) (string, error) {
		digits, enhanced, isEnhanced := strings.Cut(answer, "/")
		n, err := strconv.Atoi(digits)
		require.NoError(t, err)
		refusal := fmt.Errorf("rcpt: %w", &textproto.Error{Code: n, Msg: strings.TrimSpace(enhanced + " words")})
		if isEnhanced {
			return "smtp_" + enhanced, refusal
		}
		return "smtp_" + digits, refusal
	}
	eachWord(r, `421 450 451 452 454 552 421/4.7.0 450/4.2.1 451/4.3.0 530 534 535 538 535/5.7.8 530/5.7.9 538/5.7.11
		534/5.7.14`, smtp)
	eachWord(p, `550 551 553 554 555 550/5.1.1 550/5.7.1 554/5.4.4 552/5.3.4`, smtp)
	eachWord(u, `500 501 502 503 504 552/5.2.2 554/5.5.1`, smtp)

	for _, err := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENOTCONN, syscall.ETIMEDOUT,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENETRESET,
		syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC,
		syscall.EAGAIN, syscall.EINTR,
	} {
		add("network", r, os.NewSyscallError("read", err))
	}
	return append(list, []sample{
		{"context_canceled", c, fmt.Errorf("query: %w", context.Canceled)},
		{"context_deadline", u, context.DeadlineExceeded},
		{"context_deadline", u, &url.Error{Op: "Get", Err: context.DeadlineExceeded}},
		{"network", r, &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}},
		{"network", r, &url.Error{Op: "Get", Err: os.ErrDeadlineExceeded}},
		{"network", r, io.EOF},
		{"network", r, fmt.Errorf("read: %w", io.ErrUnexpectedEOF)},
		{"network", r, &net.OpError{Op: "write", Err: net.ErrClosed}},
		{"network", r, io.ErrClosedPipe},
		{"network", r, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}},
		{"network", r, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}},
		{"network", r, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}},
		{"network", r, &net.OpError{Op: "read", Err: errors.New("whatever")}},
		{"context_canceled", c, &net.OpError{Op: "dial", Err: context.Canceled}},
		{"network", r, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}},
		{"network", r, &net.DNSError{IsTimeout: true}},
		{"network", r, &net.DNSError{IsTemporary: true}},
		{"network", r, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{"network", r, x509.HostnameError{Certificate: &x509.Certificate{}}},
		{"network", r, x509.CertificateInvalidError{}},
		{"network", r, tls.RecordHeaderError{}},
		{"network", r, tls.AlertError(40)},
		{"network", r, pgconn.ErrConnClosed},
		{"network", r, fmt.Errorf("query: %w", notSent{errUnknown})},
		{"transaction_ended", u, pgx.ErrTxClosed},
		{"transaction_ended", u, pgx.ErrTxCommitRollback},
		{"outcome_unknown", r, unknownOutcome{errUnknown}},
		{"says_permanent", p, saysPermanent(true)},
		{"marked_permanent", p, failure.AsPermanent(errUnknown)},
		{"marked_transient", r, failure.AsTransient(errUnknown)},
	}...)
}

func TestKnownErrors(t *testing.T) {
	t.Parallel()
	for _, one := range samples(t) {
		require.Equal(t, failure.Verdict{Class: one.want, Code: one.code}, failure.Examine(one.err), "%v", one.err)
	}
}

func TestOtherErrorsAreUnknown(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		sqlState("42P01"), sqlState("P0001"), sqlState("XX000"), sqlState(""), syscall.EACCES,
		os.ErrNotExist, pgx.ErrNoRows, &textproto.Error{Code: 250}, &textproto.Error{Code: 7},
	} {
		require.Equal(t, failure.Verdict{Class: u, Code: failure.CodeUnknown}, failure.Examine(err), "%v", err)
	}
}
