package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
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
	for _, hop := range slices.Backward(list(r.Header["X-Forwarded-For"])) {
		if hop == "" {
			continue
		}
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

const (
	rateWindow = time.Minute // of [Config.RateLimit]
	maxClients = 100_000     // bounds the memory of a limiter: about 10 MB
)

// limiter counts requests per client in a sliding window: those of the present window, and of the one before as much as
// still lies within. Clients beyond maxClients in a window take the place of others, whose count begins anew: who
// commands that many addresses is not held back by a limit per address.
type limiter struct {
	limit int

	mu                sync.Mutex
	began             time.Time // the present window
	present, previous map[string]int
}

// allow counts a request, unless the client has used its share.
func (l *limiter) allow(client string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := now.Sub(l.began)
	switch {
	case passed >= 2*rateWindow:
		l.began, l.present, l.previous = now, map[string]int{}, nil
		passed = 0
	case passed >= rateWindow:
		l.began, l.present, l.previous = l.began.Add(rateWindow), map[string]int{}, l.present
		passed -= rateWindow
	}
	before := float64(l.previous[client]) * float64(rateWindow-passed) / float64(rateWindow)
	count, known := l.present[client]
	if before+float64(count) >= float64(l.limit) {
		return false
	}
	if !known && len(l.present) >= maxClients {
		for other := range l.present {
			delete(l.present, other)
			break
		}
	}
	l.present[client] = count + 1
	return true
}
