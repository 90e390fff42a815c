package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientOf names the client of a request, for what is counted per client: an IPv4 address, or the /64 of an IPv6
// address, of which one customer of a provider has at least one. It is personal data; keep it out of logs and tables.
func ClientOf(r *http.Request) string { return exchangeOf(r).client }

// identify finds the client. Proxies are the networks whose X-Forwarded-For is trusted; each proxy appends the address
// that it was reached from, so the list is read from its end: all before the first address that is no proxy's comes
// from the client, which may write anything.
func identify(r *http.Request, proxies []netip.Prefix) string {
	at, err := parseHop(r.RemoteAddr)
	if err != nil {
		return "" // not a network connection
	}
	for hop := range backwards(r.Header["X-Forwarded-For"]) {
		if !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(at) }) {
			break
		}
		next, err := parseHop(hop)
		if err != nil {
			break // the last proxy that wrote something readable answers for what stands before it
		}
		at = next
	}
	if at.Is6() {
		return netip.PrefixFrom(at, 64).Masked().String()
	}
	return at.String()
}

// backwards gives the entries of a list header from the last to the first.
func backwards(values []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, value := range slices.Backward(values) {
			for _, entry := range slices.Backward(strings.Split(value, ",")) {
				if entry = strings.TrimSpace(entry); entry != "" && !yield(entry) {
					return
				}
			}
		}
	}
}

// parseHop reads an address as proxies write it: alone, with a port, in brackets. An IPv4 address inside an IPv6 one is
// the IPv4 address, and a zone is dropped: no address has two names.
func parseHop(text string) (netip.Addr, error) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	addr, err := netip.ParseAddr(text)
	return addr.Unmap().WithZone(""), err
}
