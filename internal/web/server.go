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
	"sync"
	"time"

	"example.com/twinbox/internal/web/listener"
)

// ServerConfig bounds what one connection may take. Zero values mean the defaults.
type ServerConfig struct {
	ReadHeaderTimeout time.Duration // from the first byte of a request to the end of its headers; default 5 s
	ReadTimeout       time.Duration // to the end of its body; default 10 s
	WriteTimeout      time.Duration // from the end of the headers to the end of the answer; default 30 s
	IdleTimeout       time.Duration // between two requests; default 60 s
	// MaxConnections is how many connections are open at once; more wait. Default: [listener.API]'s share of the
	// descriptors that the process may open.
	MaxConnections int
	// DrainTimeout is how long requests in flight may take to end once the server is told to stop. Default 10 s.
	DrainTimeout time.Duration
}

// WithDefaults returns the configuration with its zero values replaced.
func (c ServerConfig) WithDefaults() ServerConfig {
	c.ReadHeaderTimeout = cmp.Or(c.ReadHeaderTimeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.MaxConnections = cmp.Or(c.MaxConnections, listener.Share(listener.API))
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	return c
}

const (
	maxHeaderBytes = 16 << 10
	cutOff         = time.Second // how long handlers whose context was ended get to return
)

// Server serves one handler on one listener, once.
type Server struct {
	config  ServerConfig
	handler http.Handler
	log     *slog.Logger
	open    sync.RWMutex // held for reading by each request in flight, and by the drain for good
}

// NewServer prepares a server. Nothing runs before [Server.Serve].
func NewServer(config ServerConfig, h http.Handler, log *slog.Logger) *Server {
	return &Server{config: config.WithDefaults(), handler: h, log: log}
}

// Serve answers requests until ctx ends, then drains: requests in flight end, new ones are refused with 503, the
// listener closes. It returns nil when all of them ended in time. It owns the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	// Requests outlive ctx: it says when to stop taking them. What outlives the drain is cancelled by this.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           s.gate(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.config.ReadHeaderTimeout,
		ReadTimeout:       s.config.ReadTimeout,
		WriteTimeout:      s.config.WriteTimeout,
		IdleTimeout:       s.config.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener.Limit(ln, s.config.MaxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	server.SetKeepAlivesEnabled(false) // each connection ends with its answer
	err := s.drain(server, cancel)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve http: %w", serveErr))
	}
	return err
}

func (s *Server) drain(server *http.Server, cancelRequests context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	idle := make(chan struct{})
	go func() {
		s.open.Lock() // waits for the requests in flight and keeps out what comes behind them
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	if err := server.Shutdown(ctx); err == nil {
		return nil
	}
	select {
	case <-idle: // what is left are connections on which no request has come
		return server.Close()
	default:
	}
	cancelRequests()
	err := server.Close()
	select {
	case <-idle:
	case <-time.After(cutOff):
	}
	return errors.Join(fmt.Errorf("drain http: requests took longer than %s", s.config.DrainTimeout), err)
}

// gate lets requests in until the server drains, and refuses them from then on.
func (s *Server) gate() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.open.TryRLock() {
			WriteProblem(w, r, refuseFor(time.Second, CodeShuttingDown, "This instance is shutting down."))
			return
		}
		defer s.open.RUnlock()
		// A body in chunks may have come with a Content-Length that net/http has dropped. A proxy that framed it by that
		// length sees another request behind it: nothing more is read from such a connection (RFC 9112, 6.1).
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		s.handler.ServeHTTP(w, r)
	})
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
