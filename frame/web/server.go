package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"example.com/twinbox/frame/listener"
)

// ServerConfig bounds what one connection may take. Zero values mean the defaults, except where 0 is said to mean off.
type ServerConfig struct {
	ReadHeaderTimeout time.Duration // from the first byte of a request to the end of its headers; default 5 s
	ReadTimeout       time.Duration // to the end of its body; default 10 s
	WriteTimeout      time.Duration // from the end of the headers to the end of the answer; default 30 s
	IdleTimeout       time.Duration // between two requests; default 60 s
	MaxHeaderBytes    int           // default 16 KiB
	// MaxConnections is how many connections are open at once; more wait. Default: [listener.API]'s share of the
	// descriptors that the process may open.
	MaxConnections int
	// DrainDelay is how long new requests are refused with 503 before the listener closes, so that load balancers notice
	// first. 0 means that the listener closes as soon as nothing is in flight.
	DrainDelay time.Duration
	// DrainTimeout is how long requests in flight may take to end once the server is told to stop, DrainDelay
	// included. Default 10 s.
	DrainTimeout time.Duration
}

// WithDefaults returns the configuration with its zero values replaced.
func (c ServerConfig) WithDefaults() ServerConfig {
	setDefault(&c.ReadHeaderTimeout, 5*time.Second)
	setDefault(&c.ReadTimeout, 10*time.Second)
	setDefault(&c.WriteTimeout, 30*time.Second)
	setDefault(&c.IdleTimeout, time.Minute)
	setDefault(&c.MaxHeaderBytes, 16<<10)
	setDefault(&c.MaxConnections, listener.Share(listener.API))
	setDefault(&c.DrainTimeout, 10*time.Second)
	return c
}

// cutOff is how long handlers whose context was ended get to return.
const cutOff = time.Second

// Server serves one handler on one listener, once.
type Server struct {
	config ServerConfig
	http   *http.Server
	log    *slog.Logger

	mu       sync.Mutex
	draining bool
	inFlight int
	idle     chan struct{} // closed when draining and nothing is in flight
}

// NewServer prepares a server. Nothing runs before [Server.Serve].
func NewServer(config ServerConfig, h http.Handler, log *slog.Logger) *Server {
	config = config.WithDefaults()
	s := &Server{config: config, log: log, idle: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.gate(h),
		ReadHeaderTimeout: config.ReadHeaderTimeout,
		ReadTimeout:       config.ReadTimeout,
		WriteTimeout:      config.WriteTimeout,
		IdleTimeout:       config.IdleTimeout,
		MaxHeaderBytes:    config.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve answers requests until ctx ends, then drains: requests in flight end, new ones are refused with 503, the
// listener closes. It returns nil when all of them ended in time. It owns the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	// Requests outlive ctx: it says when to stop taking them. What outlives the drain is cancelled by this.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(listener.Limit(ln, s.config.MaxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	err := s.drain(cancel)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve http: %w", serveErr))
	}
	return err
}

func (s *Server) drain(cancelRequests context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	s.startDraining()
	if s.config.DrainDelay > 0 {
		wait(ctx, time.After(s.config.DrainDelay))
	}
	wait(ctx, s.idle)
	if err := s.http.Shutdown(ctx); err == nil {
		return nil
	}
	if s.isIdle() { // what is left are connections on which no request has come
		return s.http.Close()
	}
	cancelRequests()
	err := s.http.Close()
	left, cancel := context.WithTimeout(context.Background(), cutOff)
	defer cancel()
	wait(left, s.idle)
	return errors.Join(fmt.Errorf("drain http: requests took longer than %s", s.config.DrainTimeout), err)
}

func wait[T any](ctx context.Context, done <-chan T) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// gate counts the requests in flight and refuses new ones once the server drains.
func (s *Server) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			w.Header().Set("Connection", "close")
			WriteProblem(w, r, refuseFor(time.Second, CodeShuttingDown, "This instance is shutting down."))
			return
		}
		defer s.leave()
		// A body in chunks may have come with a Content-Length that net/http has dropped. A proxy that framed it by that
		// length sees another request behind it: nothing more is read from such a connection (RFC 9112, 6.1).
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(&closing{ResponseWriter: w, server: s}, r)
	})
}

func (s *Server) startDraining() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	if s.inFlight == 0 {
		close(s.idle)
	}
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.inFlight++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if s.draining && s.inFlight == 0 {
		close(s.idle)
	}
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// isIdle says that the drain has seen the last request end.
func (s *Server) isIdle() bool {
	select {
	case <-s.idle:
		return true
	default:
		return false
	}
}

// closing tells the client with the last answer that there will be no other on this connection. An answer without an
// explicit WriteHeader only lacks the hint.
type closing struct {
	http.ResponseWriter
	server *Server
}

func (c *closing) WriteHeader(status int) {
	if c.server.isDraining() {
		c.Header().Set("Connection", "close")
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the connection.
func (c *closing) Unwrap() http.ResponseWriter { return c.ResponseWriter }
