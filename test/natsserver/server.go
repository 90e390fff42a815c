// Package natsserver runs a NATS server with JetStream inside this process, for examples and for tests.
//
// It is a development server: one copy of the data. Clients reach it over TCP like any other, so nothing in them knows
// that it is there.
package natsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Config says where the server listens and where it keeps its data. Dir is required.
type Config struct {
	// Addr is host:port. Port 0 takes a free one. Default 127.0.0.1:0.
	Addr string
	// Dir keeps the streams between runs. What was written survives the death of the process; of a power cut, with
	// Durable.
	Dir string
	// Durable syncs each write to the disk, which makes it about ten times slower.
	Durable bool
	// Log receives the server's warnings and errors. Default: none.
	Log *slog.Logger
}

// Server is a running server.
type Server struct {
	server *server.Server
	ended  chan struct{}
	close  sync.Once
}

// startLimit is for a disk that is busy: with a folder of many streams a start reads all of them.
const startLimit = 30 * time.Second

// Start serves until Close. ctx bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	// The server would try for as long as it may take to start.
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	if err := free.Close(); err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	options := &server.Options{
		Host: host, Port: number, JetStream: true, StoreDir: cfg.Dir, SyncAlways: cfg.Durable,
		NoSigs: true, // or it would take the process's signals
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	log := &logAdapter{log: cfg.Log}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	started := &Server{server: s, ended: make(chan struct{})}
	limit := startLimit
	if deadline, has := ctx.Deadline(); has {
		limit = min(limit, time.Until(deadline))
	}
	if !s.ReadyForConnections(limit) {
		return nil, errors.Join(fmt.Errorf("start nats on %s: not ready after %s: %s", cfg.Addr, limit, log.last()),
			started.Close())
	}
	go func() {
		s.WaitForShutdown()
		close(started.ended)
	}()
	return started, nil
}

// URL is where clients connect.
func (s *Server) URL() string { return s.server.ClientURL() }

// InProcessConn is a connection without a socket, for nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// Done is closed when the server has ended, by itself or by Close.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Err is nil: a server that ends by itself does not say why but in its log.
func (*Server) Err() error { return nil }

// Close stops serving and returns when all is on the disk. Calling it again does nothing.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	})
	return nil
}

// logAdapter passes on what a person should see.
type logAdapter struct {
	log *slog.Logger

	mu   sync.Mutex
	text string // what was worst so far
}

func (a *logAdapter) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text
}

func (a *logAdapter) say(level slog.Level, format string, args []any) {
	text := fmt.Sprintf(format, args...)
	if level >= slog.LevelError {
		a.mu.Lock()
		a.text = text
		a.mu.Unlock()
	}
	if a.log != nil {
		a.log.Log(context.Background(), level, "nats server", "detail", text)
	}
}

// Noticef implements the server's logger, as do the others.
func (*logAdapter) Noticef(string, ...any) {}

// Debugf is not called: debugging is off.
func (*logAdapter) Debugf(string, ...any) {}

// Tracef is not called: tracing is off.
func (*logAdapter) Tracef(string, ...any) {}

// Warnf passes a warning on.
func (a *logAdapter) Warnf(format string, args ...any) { a.say(slog.LevelWarn, format, args) }

// Errorf passes an error on.
func (a *logAdapter) Errorf(format string, args ...any) { a.say(slog.LevelError, format, args) }

// Fatalf passes on why the server does not start.
func (a *logAdapter) Fatalf(format string, args ...any) { a.say(slog.LevelError, format, args) }
