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
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sentinels are errors that are compared.
var sentinels = []struct {
	err     error
	verdict Verdict
}{
	{context.Canceled, Verdict{Cancelled, "context_canceled"}},
	{context.DeadlineExceeded, Verdict{Unknown, "context_deadline"}},
	{io.EOF, Verdict{Transient, "net_eof"}},
	{io.ErrUnexpectedEOF, Verdict{Transient, "net_eof"}},
	{io.ErrClosedPipe, Verdict{Transient, "net_closed"}},
	{net.ErrClosed, Verdict{Transient, "net_closed"}},
	{pgconn.ErrConnClosed, Verdict{Transient, "postgres_conn_closed"}},
	// The handler ended the transaction, or ignored the error that did.
	{pgx.ErrTxClosed, Verdict{Unknown, "postgres_tx_closed"}},
	{pgx.ErrTxCommitRollback, Verdict{Unknown, "postgres_commit_rolled_back"}},
}

// systemErrors end with an outage of a connection or route, or a shortage on the machine.
var systemErrors = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ECONNRESET: "ECONNRESET", syscall.ECONNABORTED: "ECONNABORTED",
	syscall.EPIPE: "EPIPE", syscall.ENOTCONN: "ENOTCONN", syscall.ETIMEDOUT: "ETIMEDOUT",
	syscall.EHOSTUNREACH: "EHOSTUNREACH", syscall.EHOSTDOWN: "EHOSTDOWN", syscall.ENETUNREACH: "ENETUNREACH",
	syscall.ENETDOWN: "ENETDOWN", syscall.ENETRESET: "ENETRESET", syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EMFILE: "EMFILE", syscall.ENFILE: "ENFILE", syscall.ENOBUFS: "ENOBUFS", syscall.ENOMEM: "ENOMEM",
	syscall.ENOSPC: "ENOSPC", syscall.EAGAIN: "EAGAIN", syscall.EINTR: "EINTR",
}

// answers sorts PostgreSQL's codes (appendix A) and mail servers' (RFC 5321, RFC 3463) by prefix. The first match
// decides. Others stay unknown: a missing table (42) may be a migration that has not yet run.
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
	for _, s := range sentinels {
		if err == s.err { //nolint:errorlint // Examine unwraps
			return s.verdict, true
		}
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
	case *pgconn.ConnectError:
		return examineConnection("postgres_connect", e.Unwrap()), true
	case *net.OpError:
		if e.Op == "dial" {
			return examineConnection("net_dial", e.Err), true
		}
		return examineConnection("net_io", e.Err), true
	case syscall.Errno:
		name, known := systemErrors[e]
		return Verdict{Transient, "net_" + name}, known
	case *net.DNSError:
		switch {
		case e.IsNotFound:
			return Verdict{Transient, "dns_not_found"}, true
		case e.IsTimeout:
			return Verdict{Transient, "dns_timeout"}, true
		}
		return Verdict{Transient, "dns_failed"}, true
	case *url.Error: // its cause decides
		return Verdict{}, false
	case *textproto.Error:
		return examineMailAnswer(e)
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError:
		return Verdict{Transient, "tls_certificate"}, true // an operator cures it
	case tls.AlertError, tls.RecordHeaderError:
		return Verdict{Transient, "tls_handshake"}, true
	case net.Error:
		return Verdict{Transient, "net_timeout"}, e.Timeout()
	}
	return Verdict{Cancelled, "postgres_pool_closed"}, err.Error() == poolClosed
}

// poolClosed is the text of pgxpool's error of a closed pool. It has no error value.
const poolClosed = "closed pool"

// A transient cause has the better code.
func examineConnection(code string, cause error) Verdict {
	if errors.Is(cause, context.Canceled) { // package net has its own cancellation
		return Verdict{Cancelled, "context_canceled"}
	}
	if verdict := Examine(cause); verdict.Class == Transient {
		return verdict
	}
	return Verdict{Transient, code}
}

func isUnsent(err error) bool {
	unsent, is := errors.AsType[interface {
		error
		SafeToRetry() bool
	}](err)
	return is && unsent.SafeToRetry() && unsent.Error() != connBusy
}

// connBusy is pgx's text for a connection that another goroutine uses. pgx calls it safe to retry, but its cause, a
// shared transaction, fails each time.
const connBusy = "conn busy"
