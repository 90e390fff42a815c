package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// CodeNetwork is the code of an error of a connection or a name.
const CodeNetwork = "network"

var network = Verdict{Transient, CodeNetwork}

// systemErrors end with an outage of a connection, or a shortage on the machine.
var systemErrors = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENOTCONN, syscall.ETIMEDOUT,
	syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENETRESET,
	syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC,
	syscall.EAGAIN, syscall.EINTR,
}

// answers sorts the codes of PostgreSQL (appendix A) and of mail servers (RFC 5321, RFC 3463) by prefix. The first
// match decides. Others are unknown: a missing table (42) may be a migration that has not run.
var answers = []struct {
	class    Class
	prefixes []string
}{
	// The statement timeout, a transaction that its handler ended or left open, a protocol error.
	{Unknown, []string{"sql_57014", "sql_25P02", "sql_25P03", "sql_25P04", "sql_08P01"}},
	// A full mailbox; a mail server and a client that do not understand each other.
	{Unknown, []string{"smtp_5.2.2", "smtp_5.5.", "smtp_500", "smtp_501", "smtp_502", "smtp_503", "smtp_504"}},
	// A wrong value, a constraint, a limit of the server; a mail that is too large.
	{Permanent, []string{"sql_22", "sql_23", "sql_40002", "sql_44", "sql_54", "smtp_5.3.4"}},
	// Connections, conflicts of transactions, resources, an operator, the server's files and settings.
	{Transient, []string{"sql_08", "sql_40", "sql_53", "sql_57", "sql_58", "sql_F0"}},
	// Locks, a standby, a prepared statement or a snapshot that is gone.
	{Transient, []string{"sql_55P03", "sql_55006", "sql_25006", "sql_26", "sql_72"}},
	// An operator corrects accounts, passwords and missing databases.
	{Transient, []string{"sql_28", "sql_3D", "smtp_530", "smtp_534", "smtp_535", "smtp_538"}},
	{Transient, []string{"smtp_5.7.8", "smtp_5.7.9", "smtp_5.7.11", "smtp_5.7.14"}},
	// Too many recipients for now: 552, unless an enhanced code above decides.
	{Transient, []string{"smtp_4", "smtp_552"}},
	{Permanent, []string{"smtp_5"}},
}

func examineAnswer(codes ...string) (verdict Verdict, known bool) {
	for _, row := range answers {
		for _, prefix := range row.prefixes {
			for _, code := range codes {
				if strings.HasPrefix(code, prefix) {
					return Verdict{row.class, codes[0]}, true
				}
			}
		}
	}
	return Verdict{}, false
}

var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

func examineMailAnswer(answer *textproto.Error) (verdict Verdict, known bool) {
	digits := "smtp_" + strconv.Itoa(answer.Code)
	if enhanced := enhancedCode.FindString(answer.Msg); enhanced != "" {
		return examineAnswer("smtp_"+enhanced, digits)
	}
	return examineAnswer(digits)
}

// examineOne does not look at the errors that err wraps.
func examineOne(err error) (verdict Verdict, known bool) {
	switch err { //nolint:errorlint // Examine unwraps
	case context.Canceled:
		return Verdict{Cancelled, "context_canceled"}, true
	case context.DeadlineExceeded:
		return Verdict{Unknown, "context_deadline"}, true
	case pgx.ErrTxClosed, pgx.ErrTxCommitRollback: // the handler ended it, or ignored the error that did
		return Verdict{Unknown, "transaction_ended"}, true
	case io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, pgconn.ErrConnClosed:
		return network, true
	}
	switch e := err.(type) { //nolint:errorlint // Examine unwraps
	case *mark:
		return e.verdict, true
	case interface{ Permanent() bool }:
		return Verdict{Permanent, "says_permanent"}, e.Permanent()
	case interface{ OutcomeUnknown() bool }:
		return Verdict{Transient, "outcome_unknown"}, e.OutcomeUnknown()
	case *pgconn.PgError:
		return examineAnswer("sql_" + e.Code)
	case *textproto.Error:
		return examineMailAnswer(e)
	case *pgconn.ConnectError:
		return examineConnection(e.Unwrap()), true
	case *net.OpError:
		return examineConnection(e.Err), true
	case syscall.Errno:
		return network, slices.Contains(systemErrors, e)
	case *url.Error: // its cause decides
		return Verdict{}, false
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError,
		tls.AlertError, tls.RecordHeaderError, *net.DNSError: // an operator cures some of them
		return network, true
	case net.Error:
		return network, e.Timeout()
	}
	return Verdict{Cancelled, CodePoolClosed}, err.Error() == poolClosed
}

// CodePoolClosed is the code of a closed pgxpool.
const CodePoolClosed = "postgres_pool_closed"

// poolClosed is the text of pgxpool's error. It has no error value.
const poolClosed = "closed pool"

// A transient cause has the better code.
func examineConnection(cause error) Verdict {
	if errors.Is(cause, context.Canceled) { // package net has its own cancellation
		return Verdict{Cancelled, "context_canceled"}
	}
	if verdict := Examine(cause); verdict.Class == Transient {
		return verdict
	}
	return network
}

// connBusy is pgx's text for a connection that another goroutine uses. Its cause, a shared transaction, fails each
// time.
const connBusy = "conn busy"

func isUnsent(err error) bool {
	return pgconn.SafeToRetry(err) && !strings.HasSuffix(err.Error(), connBusy)
}
