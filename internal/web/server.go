package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// Server serves one handler on one listener. Handler and Log are required.
type Server struct {
	Handler http.Handler
	Log     *slog.Logger

	ReadHeaderTimeout time.Duration // from a request's first byte to the end of its headers; default 5 s
	ReadTimeout       time.Duration // to the end of its body; default 10 s
	WriteTimeout      time.Duration // from the end of the headers to the end of the answer; default 30 s
	IdleTimeout       time.Duration // between two requests; default 90 s, longer than the proxies' 60 s
	// MaxConnections bounds the open connections; more wait. Default: [ShareDescriptors] of 4.
	MaxConnections int
	// DrainTimeout is how long running requests may take after a stop. Default 10 s.
	DrainTimeout time.Duration

	inFlight atomic.Int64
}

// ShareDescriptors returns a listener's share, 8 to 10,000 connections, of the descriptors that the process may open.
func ShareDescriptors(parts int) int { return max(8, min(Descriptors()/parts, 10_000)) }

// DefaultReadTimeout is a [Server]'s for a request's body.
const DefaultReadTimeout = 10 * time.Second

const (
	maxHeaderBytes = 16 << 10
	cutOff         = time.Second // how long cancelled handlers get to return
)

// Serve answers requests until ctx ends, and drains. It returns nil if all requests ended in time.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	// Requests outlive ctx. The drain cancels those that outlive it.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serveOne),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: cmp.Or(s.ReadHeaderTimeout, 5*time.Second),
		ReadTimeout:       cmp.Or(s.ReadTimeout, DefaultReadTimeout),
		WriteTimeout:      cmp.Or(s.WriteTimeout, 30*time.Second),
		IdleTimeout:       cmp.Or(s.IdleTimeout, 90*time.Second),
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { drained <- s.drain(server, cancel) })
	err := server.Serve(netutil.LimitListener(ln, cmp.Or(s.MaxConnections, ShareDescriptors(4))))
	if stop() { // ctx has not ended
		return fmt.Errorf("serve http: %w", err)
	}
	return <-drained
}

func (s *Server) drain(server *http.Server, cancelRequests context.CancelFunc) error {
	timeout := cmp.Or(s.DrainTimeout, 10*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	switch err := server.Shutdown(ctx); {
	case err == nil:
		return nil
	case s.inFlight.Load() == 0: // connections without a request
		return server.Close()
	}
	cancelRequests()
	ctx, cancel = context.WithTimeout(context.Background(), cutOff)
	defer cancel()
	_ = server.Shutdown(ctx)
	return errors.Join(fmt.Errorf("drain http: requests took longer than %s", timeout), server.Close())
}

func (s *Server) serveOne(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	// net/http drops the Content-Length of a body in chunks. A proxy that used it sees another request after it (RFC 9112,
	// 6.1).
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	s.Handler.ServeHTTP(w, r)
}

// ForHosts answers 421 to requests for another host than localhost, an IP address or one of the names: a foreign page
// can point its own name at this address, which browsers send in Host. where names the setting, as in "in ADMIN_HOSTS".
func ForHosts(names []string, where string, next http.Handler) http.Handler {
	names = append([]string{"", "localhost"}, names...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
		_, notAnAddress := netip.ParseAddr(host)
		if notAnAddress != nil && !slices.ContainsFunc(names, func(name string) bool {
			return strings.EqualFold(strings.TrimSuffix(name, "."), host)
		}) {
			WriteProblem(w, r, refuse(CodeHostNotAllowed, "This listener does not answer to that host name. "+
				"Ask localhost or its IP address, or name the host "+where+"."))
			return
		}
		next.ServeHTTP(w, r)
	})
}
