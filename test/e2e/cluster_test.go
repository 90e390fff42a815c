package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// cluster is a database at one address. A standby that is promoted or a backup takes the place of its server.
type cluster struct {
	leader  *postgres.Server
	address *address
	pool    *pgxpool.Pool
}

func newCluster(t *testing.T, sets ...migrations.Set) *cluster {
	t.Helper()
	c := &cluster{leader: pgtest.Durable(t), address: newAddress(t)}
	_, err := migrations.Apply(t.Context(), c.leader.DSN("postgres"), sets...)
	require.NoError(t, err)
	conn := connect(t, c.leader)
	for _, statement := range []string{`alter system set wal_keep_size = '1GB'`, `select pg_reload_conf()`} {
		_, err = conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	c.address.lead(t, c.leader)
	c.pool, err = pgxpool.New(t.Context(), c.address.dsn())
	require.NoError(t, err)
	t.Cleanup(c.pool.Close)
	return c
}

func (c *cluster) follow(t *testing.T, server *postgres.Server) {
	t.Helper()
	c.leader = server
	c.address.lead(t, server)
	c.pool.Reset()
	testkit.Until(t, func() bool { return c.pool.Ping(t.Context()) == nil })
}

func connect(t *testing.T, server *postgres.Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func answer[T any](t *testing.T, server *postgres.Server, sql string) (value T) {
	t.Helper()
	conn := connect(t, server)
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value), sql)
	require.NoError(t, conn.Close(t.Context()))
	return value
}

// backup takes a base backup by the low-level interface, as backup tools do. It returns the folder.
func (c *cluster) backup(t *testing.T) string {
	t.Helper()
	conn := connect(t, c.leader)
	_, err := conn.Exec(t.Context(), `select pg_backup_start('test', true)`)
	require.NoError(t, err)
	to := filepath.Join(testkit.Folder(t), "data")
	t.Cleanup(func() { require.NoError(t, postgres.Remove(to)) })
	from := answer[string](t, c.leader, `show data_directory`)
	copyTree(t, from, to)
	var label string
	require.NoError(t, conn.QueryRow(t.Context(), `select labelfile from pg_backup_stop(false)`).Scan(&label))
	require.NoError(t, os.RemoveAll(filepath.Join(to, "pg_wal")))
	copyTree(t, filepath.Join(from, "pg_wal"), filepath.Join(to, "pg_wal"))
	disown(t, to)
	write(t, to, "backup_label", label)
	return to
}

// copyTree keeps owners and modes. Files may vanish during the copy.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "cp", "-a", from, to)
	command.Env = append(os.Environ(), "LC_ALL=C")
	said, err := command.CombinedOutput()
	if err != nil {
		for line := range strings.Lines(string(said)) {
			require.Contains(t, line, "No such file", "copy %s", from)
		}
	}
}

func disown(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"postmaster.pid", "postmaster.opts"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(content)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	owner := exec.CommandContext(t.Context(), "chown", "--reference", filepath.Join(dir, "PG_VERSION"), path)
	require.NoError(t, owner.Run())
}

func (c *cluster) standby(t *testing.T) *postgres.Server {
	t.Helper()
	dir := c.backup(t)
	write(t, dir, "postgresql.auto.conf", fmt.Sprintf("primary_conninfo = 'host=%s user=%s'\n",
		filepath.Dir(socketOf(t, c.leader)), postgres.Superuser))
	write(t, dir, "standby.signal", "")
	server := startOn(t, dir)
	written := answer[string](t, c.leader, `select pg_current_wal_lsn()::text`)
	testkit.Until(t, func() bool {
		return answer[bool](t, server, `select coalesce(pg_last_wal_replay_lsn() >= '`+written+`', false)`)
	}, "the standby does not catch up")
	return server
}

func startOn(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(t.Context(), postgres.Config{Dir: dir, Durable: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// cutOff ends the standby's connection to the leader, so it lacks later commits.
func cutOff(t *testing.T, standby *postgres.Server) {
	t.Helper()
	conn := connect(t, standby)
	for _, statement := range []string{`alter system set primary_conninfo = ''`, `select pg_reload_conf()`} {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	testkit.Until(t, func() bool {
		return answer[int](t, standby, `select count(*) from pg_stat_wal_receiver`) == 0
	}, "the standby still receives")
}

func (c *cluster) failOver(t *testing.T, standby *postgres.Server) {
	t.Helper()
	require.NoError(t, c.leader.Kill())
	require.True(t, answer[bool](t, standby, `select pg_promote()`))
	c.follow(t, standby)
}

// restore replaces the leader by a backup. With a target the server begins a new timeline at that restore point.
// Without one it recovers as after a crash.
func (c *cluster) restore(t *testing.T, backup, target string) {
	t.Helper()
	archive := filepath.Join(answer[string](t, c.leader, `show data_directory`), "pg_wal")
	require.NoError(t, c.leader.Kill())
	if target != "" {
		write(t, backup, "postgresql.auto.conf", fmt.Sprintf("restore_command = 'cp %s/%%f %%p'\n"+
			"recovery_target_name = '%s'\nrecovery_target_action = 'promote'\n", archive, target))
		write(t, backup, "recovery.signal", "")
	}
	server := startOn(t, backup)
	testkit.Until(t, func() bool { return !answer[bool](t, server, `select pg_is_in_recovery()`) })
	c.follow(t, server)
}

func (c *cluster) restorePoint(t *testing.T, name string) {
	t.Helper()
	answer[string](t, c.leader, `select pg_create_restore_point('`+name+`')::text`)
}

type address struct {
	listener net.Listener
	ended    sync.WaitGroup

	mu     sync.Mutex
	socket string
	open   map[net.Conn]struct{}
}

func newAddress(t *testing.T) *address {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := &address{listener: listener, open: map[net.Conn]struct{}{}}
	a.ended.Go(a.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		a.hangUp("")
		a.ended.Wait()
	})
	return a
}

func (a *address) dsn() string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", postgres.Superuser, a.listener.Addr())
}

func socketOf(t *testing.T, server *postgres.Server) string {
	t.Helper()
	dsn, err := url.Parse(server.DSN("postgres"))
	require.NoError(t, err)
	return filepath.Join(dsn.Query().Get("host"), ".s.PGSQL.5432")
}

func (a *address) lead(t *testing.T, server *postgres.Server) {
	t.Helper()
	a.hangUp(socketOf(t, server))
}

func (a *address) hangUp(socket string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.socket = socket
	for conn := range a.open {
		_ = conn.Close()
	}
	clear(a.open)
}

func (a *address) accept() {
	for {
		client, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.ended.Go(func() { a.carry(client) })
	}
}

func (a *address) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	a.mu.Lock()
	server, err := net.Dial("unix", a.socket)
	if err != nil {
		a.mu.Unlock()
		return
	}
	a.open[client], a.open[server] = struct{}{}, struct{}{}
	a.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, client)
	delete(a.open, server)
}
