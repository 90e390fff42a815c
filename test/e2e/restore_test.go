package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// cluster is a server of the test's own, of which base backups can be taken and restored in place.
type cluster struct {
	server  *postgres.Server
	dir     string // the data
	backups string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{server: pgtest.Durable(t), backups: t.TempDir()}
	conn := c.connect(t)
	require.NoError(t, conn.QueryRow(t.Context(), `show data_directory`).Scan(&c.dir))
	return c
}

func (c *cluster) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func (c *cluster) database(t *testing.T, sets ...migrations.Set) *pgxpool.Pool {
	t.Helper()
	_, err := migrations.Apply(t.Context(), c.server.DSN("postgres"), sets...)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), c.server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// backup takes a base backup by the low-level API, as backup tools do: start, copy the files, stop, keep the label, and
// the log until the stop.
func (c *cluster) backup(t *testing.T) {
	t.Helper()
	conn := c.connect(t)
	_, err := conn.Exec(t.Context(), `select pg_backup_start('drill', true)`)
	require.NoError(t, err)
	copyTree(t, c.dir, filepath.Join(c.backups, "data"))
	var label string
	require.NoError(t, conn.QueryRow(t.Context(), `select labelfile from pg_backup_stop(false)`).Scan(&label))
	copyTree(t, filepath.Join(c.dir, "pg_wal"), filepath.Join(c.backups, "wal"))
	data := filepath.Join(c.backups, "data")
	require.NoError(t, os.WriteFile(filepath.Join(data, "backup_label"), []byte(label), 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(data, "postmaster.pid")))
	require.NoError(t, os.RemoveAll(filepath.Join(data, "pg_wal")))
	copyTree(t, filepath.Join(c.backups, "wal"), filepath.Join(data, "pg_wal"))
}

// copyTree keeps owners and modes. Files may vanish while they are copied.
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

// restore brings the backup back in place of the data. With recovery the server follows the archived log to the end of
// the backup and begins a new timeline; without, it takes the files for those of a crash, and stays on its timeline.
func (c *cluster) restore(t *testing.T, recovery bool) {
	t.Helper()
	require.NoError(t, c.server.Stop(t.Context()))
	entries, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(c.dir, entry.Name())))
	}
	copyTree(t, filepath.Join(c.backups, "data")+"/.", c.dir)
	if recovery {
		settings := fmt.Sprintf("restore_command = 'cp %s/%%f %%p'\nrecovery_target = 'immediate'\n"+
			"recovery_target_action = 'promote'\n", filepath.Join(c.backups, "wal"))
		file := filepath.Join(c.dir, "postgresql.auto.conf")
		require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
		signal := filepath.Join(c.dir, "recovery.signal")
		require.NoError(t, os.WriteFile(signal, nil, 0o600))
		command := exec.CommandContext(t.Context(), "chown", "--reference", filepath.Join(c.dir, "PG_VERSION"), file, signal)
		require.NoError(t, command.Run())
	}
	c.server = pgtest.Restart(t, c.server)
	testkit.Until(t, func() bool {
		conn, err := pgx.Connect(t.Context(), c.server.DSN("postgres"))
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		var recovering bool
		return conn.QueryRow(t.Context(), `select pg_is_in_recovery()`).Scan(&recovering) == nil && !recovering
	})
}

func (h *stack) rename(t *testing.T, id, name string, version int) {
	t.Helper()
	h.client().insist(t, http.StatusOK, http.MethodPatch, "/v1/customers/"+id,
		fmt.Sprintf(`{"name":%q,"expected_version":%d}`, name, version), nil)
}

func (h *stack) person(t *testing.T, email string) (id string) {
	t.Helper()
	answer := h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups",
		fmt.Sprintf(`{"email":%q,"name":"Someone"}`, email), nil)
	return fmt.Sprint(answer.Body["user_id"])
}

// known waits until both services know the person by the name, at the version. A server that was just started again
// may have left the pool with broken connections.
func (h *stack) known(t *testing.T, id, name string, version int) {
	t.Helper()
	for db, sql := range map[*pgxpool.Pool]string{
		h.customerDB:     `select count(*) from profile where user_id = '%s' and name = '%s' and version = %d`,
		h.notificationDB: `select count(*) from contact where user_id = '%s' and name = '%s' and version = %d`,
	} {
		query := fmt.Sprintf(sql, id, name, version)
		testkit.Until(t, func() bool {
			var n int
			return db.QueryRow(t.Context(), query).Scan(&n) == nil && n == 1
		}, query)
	}
}

// A server that crashed, or was stopped, has lost nothing that was published: there is nothing to confirm.
func TestARestartIsNoRestore(t *testing.T) {
	parallel(t)
	db, server := durableDatabase(t)
	h := newStackOn(t, stackBrokers(t), db)
	stop := h.start(t, customerService)
	h.start(t, notificationService)
	ada := h.person(t, "ada@example.org")
	h.known(t, ada, "Someone", 1)
	server.down()
	server.up()
	h.rename(t, ada, "Ada", 1)
	h.known(t, ada, "Ada", 2)
	stop()
	server.down()
	server.up()
	h.start(t, customerService)
	h.rename(t, ada, "Ada Lovelace", 2)
	h.known(t, ada, "Ada Lovelace", 3)
	require.Equal(t, 1, count(t, h.customerDB, `select count(*) from outbox_cursor where restored is null`))
}
