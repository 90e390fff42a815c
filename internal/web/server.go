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

// ServerConfig bounds what one connection may take. Zero values mean the defaults.
type ServerConfig struct {
	ReadHeaderTimeout time.Duration // from the first byte of a request to the end of its headers; default 5 s
	ReadTimeout       time.Duration // to the end of its body; default 10 s
	WriteTimeout      time.Duration // from the end of the headers to the end of the answer; default 30 s
	IdleTimeout       time.Duration // between two requests; default 60 s
	// MaxConnections is how many connections are open at the same time; more wait. Default: [ShareDescriptors] of 4.
	MaxConnections int
	// DrainTimeout is how long requests in flight may take to end once the server stops. Default 10 s.
	DrainTimeout time.Duration
}

// WithDefaults returns the configuration with its zero values replaced.
func (c ServerConfig) WithDefaults() ServerConfig {
	c.ReadHeaderTimeout = cmp.Or(c.ReadHeaderTimeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.MaxConnections = cmp.Or(c.MaxConnections, ShareDescriptors(4))
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	return c
}

// ShareDescriptors returns how many connections a listener may have open that gets one part in so many of the
// descriptors of the process: 8 to 10,000. The API has a quarter, so that its clients leave some for the database, the
// broker and the operators.
func ShareDescriptors(parts int) int { return max(8, min(Descriptors()/parts, 10_000)) }

const (
	maxHeaderBytes = 16 << 10
	cutOff         = time.Second // how long handlers whose context was ended get to return
)

// Server serves one handler on one listener, once.
type Server struct {
	config   ServerConfig
	handler  http.Handler
	log      *slog.Logger
	inFlight atomic.Int64
}

// NewServer prepares a server. Nothing runs before [Server.Serve].
func NewServer(config ServerConfig, h http.Handler, log *slog.Logger) *Server {
	return &Server{config: config.WithDefaults(), handler: h, log: log}
}

// Serve answers requests until ctx ends, then drains: the listener closes, and requests in flight end. It returns nil
// when all of them ended in time. It owns the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	// Requests outlive ctx, which ends the taking of them. The drain cancels those that outlive it.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serveOne),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.config.ReadHeaderTimeout,
		ReadTimeout:       s.config.ReadTimeout,
		WriteTimeout:      s.config.WriteTimeout,
		IdleTimeout:       s.config.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(ln, s.config.MaxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	err := s.drain(server, cancel)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve http: %w", serveErr))
	}
	return err
}

func (s *Server) drain(server *http.Server, cancelRequests context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	switch err := server.Shutdown(ctx); {
	case err == nil:
		return nil
	case s.inFlight.Load() == 0: // connections are left on which no request has come
		return server.Close()
	}
	cancelRequests()
	ctx, cancel = context.WithTimeout(context.Background(), cutOff)
	defer cancel()
	_ = server.Shutdown(ctx) // the next line ends the rest
	return errors.Join(fmt.Errorf("drain http: requests took longer than %s", s.config.DrainTimeout), server.Close())
}

func (s *Server) serveOne(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	// A body in chunks may have come with a Content-Length that net/http has dropped. A proxy that framed it by that
	// length sees another request behind it: nothing more is read from such a connection (RFC 9112, 6.1).
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	s.handler.ServeHTTP(w, r)
}

// ForHosts passes on what is asked of localhost, of an IP address or of one of the names, and answers everything else
// with 421, whose text says where names are set: "in ADMIN_HOSTS". A page from elsewhere can point a name of its own at
// this address and then ask through a visitor's browser, behind every firewall; the browser still sends that name in
// Host. Only a client that sends no Host at all, which is no browser, is passed on without one.
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
