package failure_test

import (
	"context"
	"fmt"
	"net"
	"os"
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
	connect := func(ctx context.Context, dial pgconn.DialFunc) failure.Verdict {
		cfg, err := pgx.ParseConfig("postgres://u@127.0.0.1/d")
		require.NoError(t, err)
		cfg.DialFunc = dial
		_, err = pgx.ConnectConfig(ctx, cfg)
		return failure.Examine(err)
	}
	silent := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		t.Cleanup(func() { _ = server.Close() })
		return client, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Equal(t, failure.Transient, connect(ctx, silent).Class)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, failure.Cancelled, connect(cancelled, new(net.Dialer).DialContext).Class)
	refuse := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	require.Equal(t, failure.CodeNetwork, connect(t.Context(), refuse).Code)

	_, err := pgx.Connect(t.Context(), pgtest.DSN(pgtest.New(t))+"&application_name=x&dbname=missing")
	require.Equal(t, failure.Verdict{Class: failure.Transient, Code: "sql_3D000"}, failure.Examine(err))
}
