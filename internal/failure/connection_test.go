package failure_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestOnARealConnection(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(pool))
	require.NoError(t, err)
	verdict := func(err error) failure.Verdict {
		require.Error(t, err)
		return failure.Examine(err)
	}

	rows, err := conn.Query(t.Context(), `select 1`)
	require.NoError(t, err)
	_, busy := conn.Exec(t.Context(), `select 2`)
	rows.Close()
	for _, err := range []error{busy, fmt.Errorf("insert customer: %w", busy)} {
		require.Equal(t, failure.Unknown, verdict(err).Class, "a handler that shares its connection: %v", err)
	}

	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-late.Done()
	_, err = conn.Exec(late, `select 3`)
	require.True(t, pgconn.SafeToRetry(err), "the case that looks like a lost connection and is a handler out of time")
	require.Equal(t, "context_deadline", verdict(err).Code)

	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = conn.Exec(short, `select pg_sleep(60)`)
	require.True(t, pgconn.Timeout(err))
	require.Equal(t, "context_deadline", verdict(err).Code)

	_, err = conn.Exec(t.Context(), `select 4`) // pgx closed it after the timeout
	require.Equal(t, failure.Verdict{Class: failure.Transient, Code: failure.CodeNetwork}, verdict(err))

	other, err := pgx.Connect(t.Context(), pgtest.DSN(pool))
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `select pg_terminate_backend($1)`, other.PgConn().PID())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `select 5`)
	require.Equal(t, failure.Transient, verdict(err).Class, "%v", err)

	closed, err := pgxpool.New(t.Context(), pgtest.DSN(pool))
	require.NoError(t, err)
	closed.Close()
	require.Equal(t, "postgres_pool_closed", verdict(closed.Ping(t.Context())).Code)
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	server, socket := localServer(t) // another process may take a closed TCP port
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socket})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = pgx.Connect(ctx, server)
	require.Equal(t, failure.Transient, failure.Classify(err), "%v", err)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pgx.Connect(cancelled, server)
	require.Equal(t, failure.Cancelled, failure.Classify(err), "%v", err)
	require.NoError(t, listener.Close())

	// A socket of its own, for a closed one stays open for a moment in a process that another test starts.
	server, socket = localServer(t)
	bound, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Close(bound)) })
	require.NoError(t, syscall.Bind(bound, &syscall.SockaddrUnix{Name: socket}))
	_, err = pgx.Connect(t.Context(), server)
	require.Equal(t, failure.CodeNetwork, failure.Examine(err).Code)

	_, err = pgx.Connect(t.Context(), pgtest.DSN(pgtest.New(t))+"&application_name=x&dbname=missing")
	var refusal *pgconn.PgError
	require.True(t, errors.As(err, &refusal))
	require.Equal(t, failure.Verdict{Class: failure.Transient, Code: "sql_3D000"}, failure.Examine(err))
}

func localServer(t *testing.T) (dsn, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "twinbox-failure-") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return "postgres://u@/d?host=" + dir, filepath.Join(dir, ".s.PGSQL.5432")
}
