package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/dev/local/postgres/binaries"
	"example.com/twinbox/test/testkit"
)

// parentVariable makes this test binary a program with a server.
const parentVariable = "TWINBOX_TEST_POSTGRES_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		os.Exit(runParent(dir))
	}
	goleak.VerifyTestMain(m)
}

func runParent(dir string) int {
	server, err := postgres.Start(context.Background(), postgres.Config{Dir: dir, Durable: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	<-server.Done()
	return 0
}

func startServer(t *testing.T, cfg postgres.Config) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server
}

func query[T any](t *testing.T, server *postgres.Server, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var value T
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

func exec(t *testing.T, server *postgres.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	server := startServer(t, postgres.Config{
		Dir: filepath.Join(testkit.Folder(t), "data"), Log: &log, Settings: map[string]string{"max_connections": "33"},
	})
	for setting, want := range map[string]string{
		"max_connections": "33", "fsync": "off", "wal_level": "logical", "listen_addresses": "", "TimeZone": "UTC",
		"server_encoding": "UTF8",
	} {
		require.Equal(t, want, query[string](t, server, `select current_setting('`+setting+`')`), setting)
	}
	connection, err := pgx.ParseConfig(server.DSN("postgres"))
	require.NoError(t, err)
	require.DirExists(t, connection.Host)
	require.NoError(t, server.Stop(t.Context()))
	require.NoDirExists(t, connection.Host, "the socket's folder goes with the server")
	require.Contains(t, log.String(), "database system is ready")
}

// initdb may be killed half-way.
func TestUnfinishedClusterIsMadeAgainAndServedOnce(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{Dir: filepath.Join(testkit.Folder(t), "data")}
	require.NoError(t, os.Mkdir(cfg.Dir+".initdb", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Dir+".initdb", "PG_VERSION"), []byte("15\n"), 0o600))
	server := startServer(t, cfg)
	require.NoDirExists(t, cfg.Dir+".initdb")

	_, err := postgres.Start(t.Context(), cfg)
	require.ErrorIs(t, err, postgres.ErrInUse)
	require.Equal(t, 1, query[int](t, server, `select 1`), "the first is not disturbed")
}

func TestKillIsACrash(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Folder(t), "data")
	server := startServer(t, postgres.Config{Dir: dir, Durable: true})
	require.Equal(t, "on", query[string](t, server, `show fsync`))
	require.Equal(t, "on", query[string](t, server, `show synchronous_commit`))
	exec(t, server, `create table kept as select 42 as n`)
	require.NoError(t, server.Err())
	content, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	require.NoError(t, err)
	memory, err := strconv.Atoi(strings.Fields(strings.Split(string(content), "\n")[6])[1])
	require.NoError(t, err)
	_, err = unix.SysvShmCtl(memory, unix.IPC_STAT, &unix.SysvShmDesc{})
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	_, err = unix.SysvShmCtl(memory, unix.IPC_STAT, &unix.SysvShmDesc{})
	require.Error(t, err, "its shared memory is gone")
	require.ErrorContains(t, server.Err(), "killed")
	require.NoError(t, server.Kill(), "a second kill is fine")

	again, err := server.Restart(t.Context())
	require.NoError(t, err)
	require.Equal(t, server.DSN("x"), again.DSN("x"))
	require.Equal(t, 42, query[int](t, again, `select n from kept`))
	require.NoError(t, again.Stop(t.Context()))
}

func TestStopThatTakesTooLongIsCutShort(t *testing.T) {
	t.Parallel()
	server := startServer(t, postgres.Config{Dir: filepath.Join(testkit.Folder(t), "data")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, server.Stop(ctx), context.Canceled)
	<-server.Done()
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	t.Run("bad setting", func(t *testing.T) {
		t.Parallel()
		_, err := postgres.Start(t.Context(), postgres.Config{
			Dir: filepath.Join(testkit.Folder(t), "data"), Settings: map[string]string{"no_such_setting": "1"},
		})
		require.ErrorIs(t, err, child.ErrEnded)
		require.ErrorContains(t, err, "no_such_setting", "the server's last words are in the error")
	})
	t.Run("no binaries of that version", func(t *testing.T) {
		t.Parallel()
		dir := testkit.Folder(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("9\n"), 0o600))
		_, err := postgres.Start(t.Context(), postgres.Config{Dir: dir})
		require.ErrorIs(t, err, binaries.ErrVersion)
		require.ErrorContains(t, err, "need 9")
		require.ErrorContains(t, err, "install PostgreSQL 9")
	})
	t.Run("cancelled in initdb", func(t *testing.T) {
		t.Parallel()
		dir := testkit.Folder(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(dir, "data")})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "an unfinished cluster is removed")
	})
}
