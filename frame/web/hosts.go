package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// CodeHostNotAllowed is the code of a request that [ForHosts] does not pass on.
const CodeHostNotAllowed Code = "host_not_allowed"

// ForHosts passes on what is asked of localhost, of an IP address or of one of the names, and answers everything else
// with 421, whose text says where names are set: "in ADMIN_HOSTS". A page from elsewhere can point a name of its own at
// this address and then ask through a visitor's browser, behind every firewall; the browser still sends that name in
// Host. Only a client that sends no Host at all, which is no browser, is passed on without one.
func ForHosts(names []string, where string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r); host != "" && !isLocalName(host) && !slices.ContainsFunc(names, func(name string) bool {
			return strings.EqualFold(strings.TrimSuffix(name, "."), host)
		}) {
			WriteProblem(w, r, &Error{
				Status: http.StatusMisdirectedRequest, Code: CodeHostNotAllowed,
				Detail: "This listener does not answer to that host name. Ask localhost or its IP address, or name the host " +
					where + ".",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is the host of the request without port, brackets and final dot.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

func isLocalName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
