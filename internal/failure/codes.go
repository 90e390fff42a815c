package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// errnoNames are the numbers of the operating system that a connection can end with.
var errnoNames = map[syscall.Errno]string{
	syscall.ECONNREFUSED:  "ECONNREFUSED",
	syscall.ECONNRESET:    "ECONNRESET",
	syscall.ECONNABORTED:  "ECONNABORTED",
	syscall.EPIPE:         "EPIPE",
	syscall.ENOTCONN:      "ENOTCONN",
	syscall.ETIMEDOUT:     "ETIMEDOUT",
	syscall.EHOSTUNREACH:  "EHOSTUNREACH",
	syscall.EHOSTDOWN:     "EHOSTDOWN",
	syscall.ENETUNREACH:   "ENETUNREACH",
	syscall.ENETDOWN:      "ENETDOWN",
	syscall.ENETRESET:     "ENETRESET",
	syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EMFILE:        "EMFILE",
	syscall.ENFILE:        "ENFILE",
	syscall.ENOBUFS:       "ENOBUFS",
	syscall.ENOMEM:        "ENOMEM",
	syscall.EAGAIN:        "EAGAIN",
	syscall.EINTR:         "EINTR",
	syscall.ENOSPC:        "ENOSPC",
}

// own is what is known without any client library.
var own = Library{
	Rows:  ownRows,
	Codes: codesOf,
	Sentinels: map[error]string{
		context.Canceled:         "context_canceled",
		context.DeadlineExceeded: "context_deadline",
		io.EOF:                   "net_eof",
		io.ErrUnexpectedEOF:      "net_eof",
		io.ErrClosedPipe:         "net_closed",
		net.ErrClosed:            "net_closed",
	},
	Connecting: []string{"net_dial", "net_io"},
}

// codesOf names the errors of the standard library and of mail servers.
func codesOf(err error) []string {
	switch known := err.(type) { //nolint:errorlint // Examine unwraps
	case *net.OpError:
		if known.Op == "dial" {
			return []string{"net_dial"}
		}
		return []string{"net_io"}
	case syscall.Errno:
		return []string{"net_" + errnoNames[known]}
	case *net.DNSError:
		switch {
		case known.IsNotFound:
			return []string{"dns_not_found"}
		case known.IsTimeout:
			return []string{"dns_timeout"}
		}
		return []string{"dns_failed"}
	case *url.Error:
		return nil // it says what was asked for; what went wrong is inside
	case *textproto.Error:
		first, _, _ := strings.Cut(known.Msg, " ")
		return smtpCodes(known.Code, first)
	case interface {
		ErrorCode() int
		EnhancedStatusCode() string
	}:
		return smtpCodes(known.ErrorCode(), known.EnhancedStatusCode())
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError:
		return []string{"tls_certificate"}
	case tls.AlertError, tls.RecordHeaderError:
		return []string{"tls_handshake"}
	case net.Error:
		if known.Timeout() {
			return []string{"net_timeout"}
		}
	}
	return nil
}

// smtpCodes names a mail server's answer by its enhanced status code (RFC 3463) where it has one, which says more than
// the three digits.
func smtpCodes(code int, enhanced string) []string {
	if code < 100 || code > 599 {
		return nil
	}
	var codes []string
	if enhancedCode.MatchString(enhanced) {
		codes = append(codes, "smtp_"+enhanced, "smtp_"+enhanced[:strings.LastIndex(enhanced, ".")])
	}
	digits := strconv.Itoa(code)
	return append(codes, "smtp_"+digits, "smtp_"+digits[:1])
}

var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}$`)
