package config

import (
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Format is a rule for text, named by the tag "format".
type Format string

// The formats. None of them asks the network.
const (
	FormatAddress  Format = "address"  // host:port to dial; the port a number from 1
	FormatBrokers  Format = "brokers"  // address, for the entries of a list
	FormatListen   Format = "listen"   // host:port to listen on; no host = every interface, port 0 = any free one
	FormatURL      Format = "url"      // http or https, with a host, without user, query and fragment
	FormatMail     Format = "mail"     // one mailbox, with or without a name: "Twinbox <no-reply@example.org>"
	FormatName     Format = "name"     // a to z, 0 to 9 and inner hyphens, at most 63: usable in group ids and labels
	FormatNetwork  Format = "network"  // CIDR with a prefix of 1 or longer and no bit set behind it: "10.0.0.0/8"
	FormatPostgres Format = "postgres" // postgres://user[:password]@host[:port]/database[?parameters]
)

func (f Format) known() bool {
	switch f {
	case "", FormatAddress, FormatBrokers, FormatListen, FormatURL, FormatMail, FormatName, FormatNetwork, FormatPostgres:
		return true
	}
	return false
}

// check returns an empty code when the text follows the format. The reason never repeats the text.
func (f Format) check(text string) (Code, string) {
	var code Code
	var why string
	switch f {
	case FormatAddress, FormatBrokers:
		code, why = CodeInvalidAddress, checkAddress(text, true)
	case FormatListen:
		code, why = CodeInvalidAddress, checkAddress(text, false)
	case FormatURL:
		code, why = CodeInvalidURL, checkURL(text)
	case FormatMail:
		code, why = CodeInvalidMail, checkMail(text)
	case FormatName:
		code, why = CodeInvalidName, checkName(text)
	case FormatNetwork:
		code, why = CodeInvalidNetwork, checkNetwork(text)
	case FormatPostgres:
		code, why = CodeInvalidPostgres, checkPostgres(text)
	}
	if why == "" {
		return "", ""
	}
	return code, why
}

// hostName is a DNS name as people use it, underscores of container names included.
var hostName = regexp.MustCompile(`^` + hostLabel + `(\.` + hostLabel + `)*\.?$`)

const hostLabel = `[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?`

func checkAddress(text string, dial bool) string {
	if strings.Contains(text, "://") {
		return "has a scheme; write host:port alone"
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "not host:port (an IPv6 address goes in brackets)"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || strconv.FormatUint(number, 10) != port:
		return "the port is not a number from 0 to 65535"
	case number == 0 && dial:
		return "port 0 cannot be dialled"
	case host == "" && dial:
		return "no host"
	case host == "":
		return ""
	}
	if _, err := netip.ParseAddr(host); err != nil && (len(host) > 253 || !hostName.MatchString(host)) {
		return "the host is neither a name nor an IP address"
	}
	return ""
}

func checkURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "does not begin with http:// or https://"
	case u.Hostname() == "":
		return "no host"
	case u.User != nil:
		return "carries a user; it would show up in links and logs"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "carries a query or a fragment; what is appended would land behind it"
	}
	return ""
}

func checkMail(text string) string {
	if _, err := mail.ParseAddress(text); err != nil {
		return "not a mail address"
	}
	return ""
}

var plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func checkName(text string) string {
	if !plainName.MatchString(text) {
		return "only a to z, 0 to 9 and inner hyphens, at most 63 characters"
	}
	return ""
}

func checkNetwork(text string) string {
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return "not a network; write 10.0.0.0/8 or fd00::/8, and /32 or /128 behind a single address"
	case network.Masked() != network:
		return "has bits behind its prefix: is the address or the length meant?"
	case network.Bits() == 0:
		return "holds every address there is"
	}
	return ""
}

// checkPostgres lets the driver have the last word, but not the word itself: its messages quote the URL.
func checkPostgres(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "not a URL (a password with special characters must be percent-encoded)"
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "does not begin with postgres://"
	case strings.Trim(u.Path, "/") == "":
		return "names no database"
	case u.Host == "" && !u.Query().Has("host"):
		return "names no host"
	}
	if _, err := pgxpool.ParseConfig(text); err != nil {
		return "the driver does not accept it; check port and parameters"
	}
	return ""
}
