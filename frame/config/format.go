package config

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Format is a rule for text, named by the tag "format".
type Format string

// The formats. None of them asks the network.
const (
	FormatAddress  Format = "address"  // host:port to dial; the port a number from 1
	FormatBrokers  Format = "brokers"  // address, for the entries of a list
	FormatHost     Format = "host"     // name of a host, or an IP address, without a port
	FormatListen   Format = "listen"   // host:port to listen on; no host = every interface, port 0 = any free one
	FormatURL      Format = "url"      // http or https, with a host, without user, query and fragment; ASCII
	FormatMail     Format = "mail"     // one mailbox, with or without a name: "Twinbox <no-reply@example.org>"
	FormatToken    Format = "token"    // printable ASCII without blanks: what an HTTP header holds
	FormatName     Format = "name"     // a to z, 0 to 9 and inner hyphens, at most 63: usable in group ids and labels
	FormatNetwork  Format = "network"  // CIDR with a prefix of 1 or longer and no bit set behind it: "10.0.0.0/8"
	FormatPostgres Format = "postgres" // postgres://user[:password]@host[:port]/database[?parameters]
)

func (f Format) known() bool {
	switch f {
	case "", FormatAddress, FormatHost, FormatBrokers, FormatListen, FormatURL, FormatMail, FormatToken, FormatName,
		FormatNetwork, FormatPostgres:
		return true
	}
	return false
}

// Check says what is wrong with a text, without repeating it; empty: nothing.
func (f Format) Check(text string) string {
	_, why := f.check(text)
	return why
}

// check returns an empty code when the text follows the format. The reason never repeats the text.
func (f Format) check(text string) (Code, string) {
	var code Code
	var why string
	switch f {
	case FormatAddress, FormatBrokers:
		code, why = CodeInvalidAddress, checkAddress(text, true)
	case FormatHost:
		code, why = CodeInvalidHost, checkHost(text)
	case FormatListen:
		code, why = CodeInvalidAddress, checkAddress(text, false)
	case FormatURL:
		code, why = CodeInvalidURL, checkURL(text)
	case FormatMail:
		code, why = CodeInvalidMail, checkMail(text)
	case FormatToken:
		code, why = CodeInvalidToken, checkToken(text)
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

func checkMail(text string) string {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return "not a mail address"
	}
	at := strings.LastIndex(parsed.Address, "@")
	local, host := parsed.Address[:at], parsed.Address[at+1:]
	switch {
	case len(local) > 64 || len(parsed.Address) > 254 || strings.ContainsFunc(parsed.Address, isNotASCII):
		return "the address is longer than mail servers take, or not ASCII"
	case strings.HasPrefix(host, "["):
		return "the address has an IP address for its domain"
	}
	return checkHost(host)
}

func isNotASCII(r rune) bool { return r < ' ' || r > '~' }

func checkToken(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "has characters other than printable ASCII without blanks"
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

// same compares two entries of a list: hosts are the same in either letter case.
func (f Format) same(a, b string) bool {
	return a == b || f == FormatBrokers && strings.EqualFold(a, b)
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
	case strings.Contains(text, "#"):
		return "has a fragment (a # must be percent-encoded)"
	case strings.Trim(u.Path, "/") == "":
		return "names no database"
	case u.Host == "" && !u.Query().Has("host"):
		return "names no host"
	}
	parsed, err := pgxpool.ParseConfig(text)
	if err != nil {
		return "the driver does not accept it; check port and parameters"
	}
	hosts := []string{parsed.ConnConfig.Host}
	for _, fallback := range parsed.ConnConfig.Fallbacks {
		hosts = append(hosts, fallback.Host)
	}
	hosts = slices.Compact(hosts) // the driver tries one with TLS, and then without
	var bad []string
	for i, host := range hosts {
		why := checkHost(host)
		switch {
		case why == "" || strings.HasPrefix(host, "/"):
		case len(hosts) == 1:
			return why
		default:
			bad = append(bad, fmt.Sprintf("host %d of %d: %s", i+1, len(hosts), why))
		}
	}
	return strings.Join(bad, "; ")
}
