package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hostName is a DNS name as people use it, underscores of container names included.
var hostName = regexp.MustCompile(`^` + hostLabel + `(\.` + hostLabel + `)*\.?$`)

const hostLabel = `[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?`

// numeric is the last label of what only an IP address may be written as: 256.1.1.1, 127.1, 0x7f000001, 2130706433.
// Resolvers take some of these for addresses, each its own, and ask the network for others.
var numeric = regexp.MustCompile(`(^|\.)(0[xX][0-9A-Fa-f]*|[0-9]+)\.?$`)

func checkHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	switch {
	case len(host) > 253 || !hostName.MatchString(host):
		return "the host is neither a name nor an IP address"
	case numeric.MatchString(host):
		return "the host looks like an IP address and is none"
	}
	return ""
}

func checkPort(port string) (number uint64, why string) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(number, 10) != port {
		return 0, "the port is not a number from 0 to 65535"
	}
	return number, ""
}

func checkAddress(text string, dial bool) string {
	if strings.Contains(text, "://") {
		return "has a scheme; write host:port alone"
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "not host:port (an IPv6 address goes in brackets)"
	}
	number, why := checkPort(port)
	switch {
	case why != "":
		return why
	case number == 0 && dial:
		return "port 0 cannot be dialled"
	case strings.HasPrefix(text, "[") && !strings.Contains(host, ":"):
		return "has brackets around something other than an IPv6 address"
	case host == "" && dial:
		return "no host"
	case host == "":
		return ""
	}
	return checkHost(host)
}

func checkURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "does not begin with http:// or https://"
	case u.User != nil:
		return "carries a user; it would show up in links and logs"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "carries a query or a fragment; what is appended would land behind it"
	case u.Hostname() == "":
		return "no host"
	case strings.Contains(u.Host, "%"):
		return "names an interface (%); its readers have others"
	case !isPlainPath(text):
		return "the path has empty, . or .. segments or characters that a URL has to escape"
	}
	if why := checkURLPort(u); why != "" {
		return why
	}
	return checkHost(u.Hostname())
}

func checkURLPort(u *url.URL) string {
	if strings.HasSuffix(u.Host, ":") {
		return "has a colon without a port"
	}
	if u.Port() == "" {
		return ""
	}
	number, why := checkPort(u.Port())
	if why == "" && number == 0 {
		return "port 0 cannot be dialled"
	}
	return why
}

// plainSegment is a path segment of unreserved characters and escapes.
var plainSegment = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})+$`)

// isPlainPath looks at the URL as it is written: the parsed one has its escapes resolved, or made.
func isPlainPath(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." || !plainSegment.MatchString(segment) {
			return false
		}
	}
	return true
}

// SameListener says that two addresses in the format listen cannot be listened on at the same time: the port is the
// same and not 0, and one host is the other, or stands for every interface of its family. Names other than localhost
// are only compared as text: nothing is resolved.
func SameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	for _, one := range listenAddresses(hostA) {
		for _, other := range listenAddresses(hostB) {
			switch {
			case one == other:
				return true
			case one.Is4() == other.Is4() && (one.IsUnspecified() || other.IsUnspecified()):
				return true
			}
		}
	}
	return strings.EqualFold(strings.TrimSuffix(hostA, "."), strings.TrimSuffix(hostB, "."))
}

// listenAddresses are the addresses that a host stands for, as far as that is known without asking.
func listenAddresses(host string) []netip.Addr {
	switch strings.ToLower(strings.TrimSuffix(host, ".")) {
	case "", "::":
		return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	case "localhost":
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	return []netip.Addr{addr.Unmap()}
}
