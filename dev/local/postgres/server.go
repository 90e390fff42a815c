package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/dev/local/postgres/binaries"
)

type Server struct {
	cfg     Config
	process *child.Process
	tail    *child.Tail
	done    chan struct{}
}

// Start creates the cluster if there is none and returns once the server answers. The context bounds the start alone.
// The server runs until Stop, Kill or the end of this process.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	cfg.Log = cmp.Or(cfg.Log, io.Discard)
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("find data directory: %w", err)
	}
	if cfg.binDir, err = binaries.Ensure(ctx, cfg.Dir, cfg.Progress); err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	id, err := identify(cfg)
	if err != nil {
		return nil, err
	}
	if err := initialise(ctx, cfg, id); err != nil {
		return nil, err
	}
	// Read before the check for a running server: later the folder may belong to one that has started since.
	left := socketDirOf(cfg.Dir)
	if err := awaitPredecessor(ctx, cfg.Dir); err != nil {
		return nil, err
	}
	_ = os.RemoveAll(left)
	return launch(ctx, cfg, id)
}

func launch(ctx context.Context, cfg Config, id identity) (_ *Server, err error) {
	if cfg.socketDir, err = makeSocketDir(cfg.socketDir, id); err != nil {
		return nil, fmt.Errorf("create socket folder: %w", err)
	}
	s := &Server{cfg: cfg, done: make(chan struct{})}
	s.process, s.tail, err = start(filepath.Join(cfg.binDir, "postgres"), cfg.arguments(), id, syscall.SIGINT, cfg.Log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), os.RemoveAll(cfg.socketDir))
	}
	go func() {
		<-s.process.Done()
		_ = os.RemoveAll(s.cfg.socketDir)
		close(s.done)
	}()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

const (
	readyPoll    = 10 * time.Millisecond
	startTimeout = time.Minute // of initdb and of the first connection, each
)

// awaitReady connects: the log's words for readiness change.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := timeout(ctx, "PostgreSQL's start", startTimeout)
	defer cancel()
	err := s.process.Await(ctx, func() bool {
		conn, err := pgconn.Connect(ctx, s.DSN("postgres"))
		return err == nil && conn.Close(ctx) == nil
	})
	if err != nil {
		return fmt.Errorf("start postgres: %w: %s", err, s.tail)
	}
	return nil
}

// DSN returns the URL of a database, without a password. The server need not run.
func (s *Server) DSN(database string) string {
	query := url.Values{"host": {s.cfg.socketDir}, "sslmode": {"disable"}}
	dsn := url.URL{Scheme: "postgres", User: url.User(Superuser), Path: "/" + database, RawQuery: query.Encode()}
	return dsn.String()
}

func (s *Server) PID() int { return s.process.PID() }

// Done is closed when the server has ended and its socket is gone.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns how the server ended: nil while it runs and after a clean stop.
func (s *Server) Err() error {
	if err := s.process.Err(); err != nil {
		return fmt.Errorf("postgres ended: %w: %s", err, s.tail)
	}
	return nil
}

// Stop rolls back open transactions, writes a checkpoint and returns when the process is gone. When the context ends
// first, it kills the server. A second call does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop postgres: %w", context.Cause(ctx)), s.Kill())
	}
}

// closeTimeout covers the last checkpoint. After a first start that is an fsync of 400 files, more than 10 s on a slow
// disk.
const closeTimeout = 25 * time.Second

func (s *Server) Close() error {
	ctx, cancel := timeout(context.Background(), "PostgreSQL's stop", closeTimeout)
	defer cancel()
	return s.Stop(ctx)
}

// Restart starts an ended server again: same directory, configuration and DSN. The old Server stays ended.
func (s *Server) Restart(ctx context.Context) (*Server, error) { return Start(ctx, s.cfg) }

func timeout(ctx context.Context, what string, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%s took longer than %s", what, d))
}
