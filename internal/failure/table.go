package failure

import (
	"maps"
	"strings"
)

// Library is what a package knows of the errors of one client library. All but Rows and Codes is optional.
type Library struct {
	// Rows say which class errors of these codes belong to: codes of one class that are so for one reason, separated by
	// spaces. A code may be a family (sql_40, smtp_4): a row for the single code goes before it.
	Rows map[string]Class
	// Codes names one error, from the particular to the family, and looks at nothing below it. Nothing: it is another's.
	Codes func(err error) []string
	// Sentinels are errors that are compared, with their codes.
	Sentinels map[error]string
	// Connecting are the codes of errors that only the connection can have caused: more is known of what they wrap.
	Connecting []string
	// Unsent gives the code of an error, wherever in its chain, that means that the server has seen nothing. It is asked
	// last, when no code is known. Empty: it is none.
	Unsent func(err error) (code string)
}

var (
	libraries []Library
	sentinels = map[error]string{}
	byCode    = map[string]Class{}
)

func init() { Register(own) }

// Register adds a library to the table. It is for the init of packages that know one, and panics for a code that the
// table has.
func Register(l Library) {
	libraries = append(libraries, l)
	maps.Copy(sentinels, l.Sentinels)
	for codes, class := range l.Rows {
		for code := range strings.FieldsSeq(codes) {
			if _, twice := byCode[code]; twice {
				panic("failure: two rows for " + code)
			}
			byCode[code] = class
		}
	}
}

// look takes the codes of one error, from the particular to the family, and returns the first row there is, under the
// most particular code. An error without a row is not known.
func look(codes ...string) (Verdict, bool) {
	for _, code := range codes {
		if class, found := byCode[code]; found {
			return Verdict{class, codes[0]}, true
		}
	}
	return Verdict{}, false
}

// ownRows are what is known without any library: what errors say of themselves, contexts, the network, and a mail
// server's answers, by enhanced status code (RFC 3463) first, then by the three digits (RFC 5321), then by the first of
// them.
var ownRows = map[string]Class{
	// its author knows that it is final
	"marked_permanent says_permanent": Permanent,
	// its author knows that it passes
	"marked_transient": Transient,
	// it may have been done and may not: to be done again, under the same id
	"outcome_unknown": Transient,

	// the process stops, or the partition is another's
	"context_canceled": Cancelled,
	// one that always runs out of time must end in the dead letters
	"context_deadline": Unknown,

	// the other side is down, restarts, or has let the connection go
	"net_ECONNREFUSED net_ECONNRESET net_ECONNABORTED net_EPIPE net_ENOTCONN net_eof net_closed " +
		"net_dial net_io": Transient,
	// silence on the way: a wall, a lost route, a server that hangs
	"net_ETIMEDOUT net_timeout": Transient,
	// no way there at the moment
	"net_EHOSTUNREACH net_EHOSTDOWN net_ENETUNREACH net_ENETDOWN net_ENETRESET": Transient,
	// this machine is short of ports, files, memory or disk, which is no event's fault
	"net_EADDRNOTAVAIL net_EMFILE net_ENFILE net_ENOBUFS net_ENOMEM net_ENOSPC net_EAGAIN net_EINTR": Transient,
	// names come and go with the servers they stand for
	"dns_not_found dns_timeout dns_failed": Transient,
	// certificates are put right by an operator; no event is at fault
	"tls_certificate tls_handshake": Transient,

	// the server says: not now
	"smtp_4": Transient,
	// the server says: never
	"smtp_5": Permanent,
	// login, TLS and account are put right by an operator; no mail is at fault
	"smtp_530 smtp_534 smtp_535 smtp_538 smtp_5.7.8 smtp_5.7.9 smtp_5.7.11 smtp_5.7.14": Transient,
	// means too many recipients for now (RFC 5321, 4.5.3.1.10), where no enhanced code says more
	"smtp_552": Transient,
	// the mail is too large for the server
	"smtp_5.3.4": Permanent,
	// the mailbox is full: people make room, or do not
	"smtp_5.2.2": Unknown,
	// server and client do not understand each other
	"smtp_500 smtp_501 smtp_502 smtp_503 smtp_504 smtp_5.5": Unknown,
}
