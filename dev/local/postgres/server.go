package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Server is a running PostgreSQL.
type Server struct {
	cfg   Config
	child *child
	done  chan struct{}
}

// Start makes the cluster if there is none, starts the server and returns once it answers. The context bounds the
// start alone: a started server runs until Stop, Kill or the end of this process.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find data directory: %w", err)
	}
	cfg.Dir = dir
	if cfg.BinDir, err = chooseBinaries(ctx, cfg); err != nil {
		return nil, err
	}
	id, err := identify(cfg.Dir, cfg.Identity)
	if err != nil {
		return nil, err
	}
	if !initialised(cfg.Dir) {
		initCtx, cancel := timeout(ctx, "initdb", cfg.StartTimeout)
		defer cancel()
		if err := initialise(initCtx, cfg, cfg.BinDir, id); err != nil {
			return nil, err
		}
	}
	// Read before the check that no server runs here: after it, the folder may belong to one that has started meanwhile.
	left := socketDirOf(cfg.Dir)
	if err := awaitPredecessor(ctx, cfg.Dir); err != nil {
		return nil, err
	}
	sweepSocketDir(left)
	return launch(ctx, cfg, id)
}

// launch starts the server on an initialised directory.
func launch(ctx context.Context, cfg Config, id identity) (*Server, error) {
	var err error
	if cfg.socketDir, err = makeSocketDir(cfg.socketDir, id); err != nil {
		return nil, fmt.Errorf("create socket folder: %w", err)
	}
	s := &Server{cfg: cfg, done: make(chan struct{})}
	s.child, err = start(filepath.Join(cfg.BinDir, "postgres"), cfg.arguments(), id.attributes(syscall.SIGINT), cfg.Log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), os.RemoveAll(cfg.socketDir))
	}
	go s.tidy()

	ctx, cancel := timeout(ctx, "PostgreSQL's start", cfg.StartTimeout)
	defer cancel()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

// tidy removes the socket's folder when the server has ended, however it ended.
func (s *Server) tidy() {
	<-s.child.done
	_ = os.RemoveAll(s.cfg.socketDir) // a leftover folder of a server that is gone does no harm
	close(s.done)
}

const readyPoll = 10 * time.Millisecond

// awaitReady connects until it works: the server says it is ready in its log only, in words that change.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		conn, err := pgconn.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.child.done:
			return fmt.Errorf("start postgres: %w: %s", ErrExited, s.child.tail)
		case <-ctx.Done():
			return fmt.Errorf("start postgres: %w: %s", context.Cause(ctx), s.child.tail)
		case <-tick.C:
		}
	}
}

// DSN gives the URL of a database of this server. It holds no password. The server need not be running.
func (s *Server) DSN(database string) string {
	query := url.Values{"host": {s.cfg.socketDir}, "sslmode": {"disable"}}
	dsn := url.URL{Scheme: "postgres", User: url.User(Superuser), Path: "/" + database, RawQuery: query.Encode()}
	return dsn.String()
}

// Done is closed when the server has ended and its socket is gone.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says how the server ended: nil while it runs and after a clean stop.
func (s *Server) Err() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	if s.child.err != nil {
		return fmt.Errorf("postgres ended: %w: %s", s.child.err, s.child.tail)
	}
	return nil
}

// Stop shuts the server down: open transactions are rolled back, connections closed, a checkpoint written. It returns
// when the process is gone. A stop that outlasts the context is cut short, and the next start recovers from the log.
// Stopping twice is fine.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.child.signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop postgres: %w", context.Cause(ctx)), s.Kill())
	}
}

// Restart starts a server that has ended once more: same directory, same configuration, same DSN, so that clients
// which kept the DSN find it again. The old Server stays ended.
func (s *Server) Restart(ctx context.Context) (*Server, error) { return Start(ctx, s.cfg) }

func timeout(ctx context.Context, what string, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%s took longer than %s", what, d))
}
