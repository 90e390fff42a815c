package config

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Format is a rule for text, named by the tag "format". None of them asks the network.
type Format string

// The formats that are also asked for in code.
const (
	FormatAddress Format = "address"
	FormatListen  Format = "listen"
	FormatURL     Format = "url"

	formatPEM Format = "pem"
)

// formats are all there are. What is wrong with a text is said without repeating it.
var formats = map[Format]struct {
	code  Code
	check func(text string) (why string)
}{
	"": {check: func(string) string { return "" }},
	// host:port to dial, the port a number from 1; as brokers for the entries of a list
	FormatAddress: {"invalid_address", checkDial},
	"brokers":     {"invalid_address", checkDial},
	// host:port to listen on; no host = every interface, port 0 = any free one
	FormatListen: {"invalid_address", checkListen},
	// name of a host, or an IP address, without a port
	"host": {"invalid_host", checkHost},
	// http or https, with a host, without user, query and fragment; ASCII
	FormatURL: {"invalid_url", checkURL},
	// certificates or a key, in lines
	formatPEM: {"invalid_pem", func(text string) string {
		if block, _ := pem.Decode([]byte(text)); block == nil {
			return "no block of PEM"
		}
		return ""
	}},
	// one mailbox, with or without a name: "Twinbox <no-reply@example.org>"
	"mail": {"invalid_mail_address", checkMail},
	// what an HTTP header holds
	"token": {"invalid_token", matches(`^[!-~]*$`, "has characters other than printable ASCII without blanks")},
	// usable in group ids and labels
	"name": {"invalid_name", matches(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`,
		"only a to z, 0 to 9 and inner hyphens, at most 63 characters")},
	// CIDR with a prefix of 1 or longer and no bit set behind it: "10.0.0.0/8"
	"network": {"invalid_network", checkNetwork},
	// postgres://user[:password]@host[:port]/database[?parameters]
	"postgres": {"invalid_postgres_url", checkPostgres},
}

// Check says what is wrong with a text, without repeating it; empty: nothing.
func (f Format) Check(text string) string { return formats[f].check(text) }

func matches(pattern, why string) func(string) string {
	compiled := regexp.MustCompile(pattern)
	return func(text string) string {
		if compiled.MatchString(text) {
			return ""
		}
		return why
	}
}

// hostName is a DNS name as people use it, underscores of container names included.
var hostName = regexp.MustCompile(`^` + hostLabel + `(\.` + hostLabel + `)*\.?$`)

const hostLabel = `[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?`

// numeric is the last label of what only an IP address may be written as: 256.1.1.1, 127.1, 0x7f000001, 2130706433.
// Resolvers take some of these for addresses, each its own, and ask the network for others.
var numeric = regexp.MustCompile(`(^|\.)(0[xX][0-9A-Fa-f]*|[0-9]+)\.?$`)

func checkHost(host string) string {
	_, notAnAddress := netip.ParseAddr(host)
	switch {
	case notAnAddress == nil:
		return ""
	case len(host) > 253 || !hostName.MatchString(host):
		return "the host is neither a name nor an IP address"
	case numeric.MatchString(host):
		return "the host looks like an IP address and is none"
	}
	return ""
}

func checkDial(text string) string {
	host, port, _ := net.SplitHostPort(text)
	switch why := checkListen(text); {
	case why != "":
		return why
	case host == "":
		return "no host"
	case port == "0":
		return "port 0 cannot be dialled"
	}
	return ""
}

func checkListen(text string) string {
	host, port, err := net.SplitHostPort(text)
	switch {
	case strings.Contains(text, "://"):
		return "has a scheme; write host:port alone"
	case err != nil:
		return "not host:port (an IPv6 address goes in brackets)"
	case !isPort(port):
		return "the port is not a number from 0 to 65535"
	case strings.HasPrefix(text, "[") && !strings.Contains(host, ":"):
		return "has brackets around something other than an IPv6 address"
	case host == "":
		return ""
	}
	return checkHost(host)
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && strconv.FormatUint(number, 10) == text
}

// plainURL has unreserved characters and escapes in the segments of its path, none of which is empty.
var plainURL = regexp.MustCompile(
	`^(?i:https?)://(\[[0-9A-Fa-f:.]+\]|[^/:@?#\[\]]+)(?::([0-9]+))?` +
		`((?:/(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})+)*)/?$`)

func checkURL(text string) string {
	parts := plainURL.FindStringSubmatch(text)
	if parts == nil {
		return "not http:// or https://, a host, and a port and a plain path where needed; " +
			"a user would show up in logs, and what is appended would land behind a query or a fragment"
	}
	host, port, segments := strings.Trim(parts[1], "[]"), parts[2], parts[3]
	switch {
	case port != "" && (!isPort(port) || port == "0"):
		return "the port is not a number from 1 to 65535"
	case segments != "" && path.Clean(segments) != segments:
		return "the path has . or .. segments"
	}
	return checkHost(host)
}

func checkMail(text string) string {
	parsed, err := mail.ParseAddress(text)
	if err != nil {
		return "not a mail address"
	}
	at := strings.LastIndex(parsed.Address, "@")
	local, host := parsed.Address[:at], parsed.Address[at+1:]
	isNotASCII := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case len(local) > 64 || len(parsed.Address) > 254 || strings.ContainsFunc(parsed.Address, isNotASCII):
		return "the address is longer than mail servers take, or not ASCII"
	case strings.HasPrefix(host, "["):
		return "the address has an IP address for its domain"
	}
	return checkHost(host)
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
		if why := checkHost(host); why != "" && !strings.HasPrefix(host, "/") {
			bad = append(bad, fmt.Sprintf("host %d of %d: %s", i+1, len(hosts), why))
		}
	}
	return strings.Join(bad, "; ")
}

// SameListener says that two addresses in the format listen cannot be listened on at the same time: the port is the
// same and not 0, and one host is the other, or is every interface. Names other than localhost are only compared as
// text: nothing is resolved.
func SameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	hostA, hostB = listenHost(hostA), listenHost(hostB)
	return hostA == hostB || hostA == "" || hostB == ""
}

// listenHost gives each host one name: every interface none, and both loopback addresses that of localhost.
func listenHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	switch {
	case err != nil:
		return host
	case addr.IsUnspecified():
		return ""
	case addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback():
		return "localhost"
	}
	return addr.String()
}
