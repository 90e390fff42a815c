package migrations_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/services"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// set makes a set of files numbered from 1.
func set(name string, statements ...string) migrations.Set {
	files := fstest.MapFS{}
	for i, statement := range statements {
		file := string([]byte{'0', '0', '0', byte('1' + i)}) + "_step.sql"
		files[file] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statement + "\n")}
	}
	return migrations.Set{Name: name, FS: files}
}

func TestApplyRunsEachFileOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	one := set("one", `create table a (n int);`)
	two := set("two", `create table b (n int);`, `alter table b add m int;`)

	applied, err := migrations.Apply(t.Context(), pgtest.DSN(pool), one, two)
	require.NoError(t, err)
	require.Equal(t, []string{"one/0001_step.sql", "two/0001_step.sql", "two/0002_step.sql"}, applied)

	applied, err = migrations.Apply(t.Context(), pgtest.DSN(pool), one, two)
	require.NoError(t, err)
	require.Empty(t, applied)
}

func TestAnAppliedFileMayNotChange(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, set("s", `create table a (n int);`))
	apply := func(statements ...string) error {
		_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), set("s", statements...))
		return err
	}
	err := apply(`create table a (n int, m int);`, `create table b (n int);`)
	require.ErrorContains(t, err, "schema_edited: 0001_step.sql is not the file that this database has applied as ")
	require.Error(t, apply(`create table a (n int);`, `create table a (n int);`), "the second one fails")
	require.NoError(t, apply(`create table a (n int);`, `create table b (n int);`), "a file that failed may change")
	_, err = pool.Exec(t.Context(), `delete from migration_file`)
	require.NoError(t, err)
	require.NoError(t, apply(`create table a (n int);`, `create table b (m int);`), "a database of an earlier release")
}

// newRole makes a role that serves.
func newRole(t *testing.T, pool *pgxpool.Pool) (role string) {
	t.Helper()
	role = pool.Config().ConnConfig.Database + "_serving"
	_, err := pool.Exec(t.Context(), "create role "+role+" login")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.WithoutCancel(t.Context()), "drop owned by "+role+"; drop role "+role)
		require.NoError(t, err)
	})
	return role
}

func TestRunConcurrently(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	role := newRole(t, pool)
	slow := set("slow", `select pg_sleep(0.2); create table a (n int);`, `create table b (n int);`)

	const callers = 5
	counts := make([]int, callers)
	var group errgroup.Group
	for i := range callers {
		group.Go(func() error {
			m := migrations.Migration{URL: pgtest.DSN(pool), Sets: []migrations.Set{slow}, Role: role}
			applied, err := m.Run(t.Context())
			counts[i] = len(applied)
			return err
		})
	}
	require.NoError(t, group.Wait())
	total := 0
	for _, count := range counts {
		total += count
	}
	require.Equal(t, 2, total, "one caller works, the others find nothing to do")
}

// A report that reads a table for minutes holds up the migration of the table, and no writer.
func TestAMigrationThatWaitsForALockLetsOthersPass(t *testing.T) {
	t.Parallel()
	first, second := `create table a (n int);`, `alter table a add m int;`
	pool := pgtest.New(t, set("s", first))
	report, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = report.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = report.Exec(t.Context(), `select from a`)
	require.NoError(t, err)

	lines, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		_, err := migrations.Migration{
			URL: pgtest.DSN(pool), Sets: []migrations.Set{set("s", first, second)},
			Report: func(line string) { lines <- line },
		}.Run(t.Context())
		ended <- err
	}()
	require.Equal(t, "s/0002_step.sql waits for a lock that another transaction holds: the next attempt is in 2s", <-lines)
	_, err = pool.Exec(t.Context(), `insert into a values (1)`)
	require.NoError(t, err)
	require.NoError(t, report.Commit(t.Context()))
	require.NoError(t, <-ended)
	_, err = pool.Exec(t.Context(), `insert into a values (1, 2)`)
	require.NoError(t, err)
}

// A run that waits for a lock ends with its context. The files before stay applied.
func TestAMigrationThatWaitsForALockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	held, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = held.Exec(t.Context(), `create table b (n int)`)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	applied, err := migrations.Migration{
		URL: pgtest.DSN(pool), Sets: []migrations.Set{set("s", `create table a (n int);`, `create table b (n int);`)},
		Report: func(string) { stop() },
	}.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, applied, 1)
}

// A waiting caller must not hold a snapshot: a concurrent index build waits for all of them.
func TestApplyBuildsIndexesConcurrentlyWhileOthersWait(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	index := set("ix", `create table a (n int);`)
	index.FS.(fstest.MapFS)["0002_index.sql"] = &fstest.MapFile{
		Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\ncreate index concurrently a_n on a (n);\n"),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for range 4 {
		group.Go(func() error {
			_, err := migrations.Apply(ctx, pgtest.DSN(pool), index)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func TestRunWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(pool))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `select pg_advisory_lock($1)`, int64(0x7477696e626f78))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lines []string
	applied, err := migrations.Migration{
		URL: pgtest.DSN(pool), Sets: []migrations.Set{set("one", `create table a (n int);`)},
		Report: func(line string) { lines = append(lines, line); cancel() },
	}.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"another migrate works on this database: waiting for its end"}, lines)
	require.Empty(t, applied)
}

func TestApplyKeepsWhatSucceeded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	broken := set("broken", `create table a (n int);`, `create table b (n int); select 1/0;`, `create table c (n int);`)

	applied, err := migrations.Apply(t.Context(), pgtest.DSN(pool), broken)
	var sqlErr *pgconn.PgError
	require.ErrorAs(t, err, &sqlErr)
	require.Equal(t, "22012", sqlErr.Code)
	require.ErrorContains(t, err, "migrate broken")
	require.Len(t, applied, 1)

	var a, b bool
	require.NoError(t, pool.QueryRow(t.Context(),
		`select to_regclass('a') is not null, to_regclass('b') is not null`).Scan(&a, &b))
	require.True(t, a)
	require.False(t, b, "a failed file leaves nothing")
}

func TestApplyNeverRepeatsTheDSN(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"bad port":         "postgres://u:s3cret-word@127.0.0.1:nope/db",
		"bad escape":       "postgres://u:s3cret-word%zz@127.0.0.1/db",
		"bad option":       "host=127.0.0.1 password=s3cret-word sslmode=perhaps",
		"port 1 is closed": "postgres://u:s3cret-word@127.0.0.1:1/db?connect_timeout=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := migrations.Apply(t.Context(), dsn, migrations.Inbox)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "s3cret-word")
		})
	}
}

var engine = []migrations.Set{
	migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Lease, migrations.Command,
}

// allSets has those of the project's services, too.
func allSets() []migrations.Set {
	all := engine
	for _, s := range services.All() {
		all = slices.Concat(all, s.Migrations)
	}
	return all
}

// The files of every set are numbered 1, 2, 3 ... so that two branches that both added one collide in the merge.
func TestFilesAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	for _, set := range allSets() {
		names, err := fs.Glob(set.FS, "*.sql")
		require.NoError(t, err)
		for i, name := range names {
			require.Regexp(t, `^\d{4}_[a-z_]+\.sql$`, name)
			require.Equal(t, fmt.Sprintf("%04d", i+1), name[:4], set.Name)
		}
	}
}

func TestServicesSchemasApply(t *testing.T) {
	t.Parallel()
	schemas := map[string][]migrations.Set{"engine": engine}
	for _, s := range services.All() {
		schemas[s.Name] = s.Migrations
	}
	for name, sets := range schemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t, sets...)
			newer, err := migrations.Check(t.Context(), pool, sets...)
			require.NoError(t, err)
			require.Empty(t, newer)
		})
	}
}
