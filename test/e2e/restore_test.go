package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
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

// timeline is that of the last checkpoint.
func (c *cluster) timeline(t *testing.T) (id int) {
	t.Helper()
	conn := c.connect(t)
	_, err := conn.Exec(t.Context(), `checkpoint`)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), `select timeline_id from pg_control_checkpoint()`).Scan(&id))
	return id
}

const drillToken = "0123456789abcdef0123456789abcdef"

// operated gives a service of the stack an admin listener at a known address and an operator's token.
func operated(t *testing.T, environ []string) (_ []string, admin string) {
	t.Helper()
	admin = testkit.ReservePort(t)
	return append(environ, "ADMIN_ADDR="+admin, "ADMIN_TOKEN="+drillToken), admin
}

// probe asks an admin listener; 0: it does not answer.
func probe(t *testing.T, admin, path string) (status int, report string) {
	t.Helper()
	answer, err := (&client{base: "http://" + admin, http: http.DefaultClient}).try(
		t.Context(), http.MethodGet, path, "", nil)
	if err != nil {
		return 0, err.Error()
	}
	return answer.Status, answer.raw
}

// begin starts a service that will not be ready by itself.
func (h *stack) begin(t *testing.T, name string) (ready chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan struct{})
	host := service.Host{
		Log:   slog.New(slog.DiscardHandler),
		Ready: func(service.Listening) { close(ready) },
	}
	go func() { ended <- serve(ctx, name, h.environ(name), host) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return ready
}

// confirmRestore asks a service to go on, and returns the status, the last line and how many events it took back.
func confirmRestore(t *testing.T, admin string, dryRun bool) (status int, last string, events int64) {
	t.Helper()
	body := fmt.Sprintf(`{"by":"ada","reason":"the drill","dry_run":%t}`, dryRun)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+admin+"/admin/v1/outbox/restore/confirm", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+drillToken)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	last = lines[len(lines)-1]
	var line struct {
		Result struct {
			Count int64 `json:"count"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(last), &line), last)
	return response.StatusCode, last, line.Result.Count
}

// versions are the highest of each key on the users' topic. It fails where one comes twice or is left out.
func (h *stack) versions(t *testing.T, records int) map[string]int {
	t.Helper()
	highest, ids := map[string]int{}, map[string]string{}
	for _, record := range kafkatest.ReadAll(t, h.brokers, contract.TopicUsers, records) {
		var id, version string
		for _, header := range record.Headers {
			switch string(header.Key) {
			case "ce_id":
				id = string(header.Value)
			case "ce_aggregateversion":
				version = string(header.Value)
			}
		}
		place := string(record.Key) + "/" + version
		if known, again := ids[place]; again {
			require.Equal(t, known, id, "two events of a key have one number: %s", place)
			continue
		}
		ids[place] = id
		highest[string(record.Key)]++
		require.Equal(t, fmt.Sprint(highest[string(record.Key)]), version, "a gap in %s", record.Key)
	}
	return highest
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

// The drill of docs/operations.md. A base backup is restored in place: the database forgets what was published after
// it. The service does not publish, does not take requests, says why, and goes on with everything after the operator
// has confirmed. Nothing of it is silent, and no consumer sees a version twice.
func TestARestoreInPlaceIsNoticed(t *testing.T) {
	for name, recovery := range map[string]bool{"on the same timeline": false, "on a new timeline": true} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			c := newCluster(t)
			h := newStackOn(t, stackBrokers(t), c.database(t, migrations.ForCustomer()...))
			var admin string
			h.customerEnv, admin = operated(t, h.customerEnv)
			stop := h.start(t, customerService)
			h.start(t, notificationService)
			ada := h.person(t, "ada@example.org")
			h.known(t, ada, "Someone", 1)
			timeline := c.timeline(t)
			c.backup(t)
			h.rename(t, ada, "Ada", 1)
			bob := h.person(t, "bob@example.org")
			h.known(t, ada, "Ada", 2)
			h.known(t, bob, "Someone", 1)
			stop()
			h.customerDB.Reset()
			c.restore(t, recovery)
			require.Equal(t, recovery, c.timeline(t) > timeline)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from users`), "bob is forgotten")

			ready := h.begin(t, customerService)
			var report string
			testkit.Until(t, func() bool {
				var status int
				status, report = probe(t, admin, "/readyz")
				return status == http.StatusServiceUnavailable && strings.Contains(report, contract.TopicUsers) &&
					strings.Contains(report, "restored") // the cause and the relay's check, each as of its own moment
			}, "it says why: %s", &report)
			status, _ := probe(t, admin, "/livez")
			require.Equal(t, http.StatusOK, status)
			_, err := h.client().try(t.Context(), http.MethodGet, "/v1/customers/"+ada, "", nil)
			require.Error(t, err, "nothing is written until it is confirmed")

			_, last, events := confirmRestore(t, admin, true)
			require.EqualValues(t, 2, events, last)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from users`), "a dry run changes nothing")
			_, last, events = confirmRestore(t, admin, false)
			require.EqualValues(t, 2, events, last)
			<-ready
			h.known(t, ada, "Ada", 2)
			h.known(t, bob, "Someone", 1)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from operator_action where verb = 'confirm_restore'`))

			h.rename(t, ada, "Ada Lovelace", 2)
			h.rename(t, bob, "Bob", 1)
			carol := h.person(t, "carol@example.org")
			h.known(t, ada, "Ada Lovelace", 3)
			h.known(t, bob, "Bob", 2)
			h.known(t, carol, "Someone", 1)
			require.Equal(t, map[string]int{ada: 3, bob: 2, carol: 1}, h.versions(t, 6))
			for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
				require.Zero(t, count(t, db, `select count(*) from dead_letter`))
			}
			testkit.Until(t, func() bool { return len(h.box.Messages()) >= 3 })
			require.Len(t, h.box.Messages(), 3, "one mail for each person")
			testkit.Until(t, func() bool {
				status, _ := probe(t, admin, "/readyz")
				return status == http.StatusOK
			})

			testkit.Until(t, func() bool { // a busy machine may let the group lose its members for a while
				status, last, _ = confirmRestore(t, admin, false)
				return status == http.StatusConflict && strings.Contains(last, "consuming")
			}, "nothing is confirmed while the service works: %s", &last)
		})
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

// A service that had only read since the backup has published nothing by which the broker could tell. Its groups'
// offsets are ahead of its database, and it reads what it has forgotten again, by itself: also one that ran through the
// restore.
func TestARestoreOfWhatOnlyReadsIsMadeUpFor(t *testing.T) {
	for name, through := range map[string]bool{"started after it": false, "running through it": true} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			c := newCluster(t)
			h := newStackOn(t, stackBrokers(t), pgtest.New(t, migrations.ForCustomer()...))
			h.notificationDB = c.database(t, migrations.ForNotification()...)
			h.notificationEnv = append(h.notificationEnv, "DATABASE_URL="+pgtest.DSN(h.notificationDB), kafkatest.OnBatchEdge)
			h.start(t, customerService)
			stop := h.start(t, notificationService)
			ada := h.person(t, "ada@example.org")
			h.known(t, ada, "Someone", 1)
			testkit.Until(t, func() bool { // her mail has been told of, and that is all this service has to tell
				return count(t, h.customerDB, `select count(*) from verification_mail`) == 1
			})
			c.backup(t)
			h.rename(t, ada, "Ada", 1)
			h.rename(t, ada, "Ada Lovelace", 2)
			h.known(t, ada, "Ada Lovelace", 3)
			if !through {
				stop()
			}
			h.notificationDB.Reset()
			c.restore(t, true)
			require.Equal(t, 1, count(t, h.notificationDB, `select count(*) from contact where version = 1`), "it is forgotten")
			if through {
				h.rename(t, ada, "Countess", 3)
				h.known(t, ada, "Countess", 4)
			} else {
				h.start(t, notificationService)
				h.known(t, ada, "Ada Lovelace", 3)
			}
			require.Zero(t, count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting'`))
			require.Len(t, h.box.Messages(), 1)
		})
	}
}
