package deploy_test

import (
	"context"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// createDatabases replaces psql: it runs each statement of databases.sql, and each row of the last one.
func createDatabases(t *testing.T, conn *pgx.Conn, databases string) {
	t.Helper()
	var sql strings.Builder
	for line := range strings.Lines(read(t, "deploy/postgres/databases.sql")) {
		if !strings.HasPrefix(line, "--") && line != "\\getenv databases DATABASES\n" {
			sql.WriteString(line)
		}
	}
	script, ends := strings.CutSuffix(sql.String(), "\\gexec\n")
	require.True(t, ends)
	first, query, found := strings.Cut(script, ";")
	require.True(t, found)
	_, err := conn.Exec(t.Context(), first)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), strings.ReplaceAll(query, ":'databases'", "'"+databases+"'"))
	require.NoError(t, err)
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// The second call has one more database: the others keep their tables.
func TestDatabases(t *testing.T) {
	t.Parallel()
	super := pgtest.DSN(pgtest.New(t))
	conn, err := pgx.Connect(t.Context(), super)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	// This server asks for no password.
	here := func(composed string) string {
		t.Helper()
		to, err := url.Parse(composed)
		require.NoError(t, err)
		password, _ := to.User.Password()
		require.Equal(t, "twinbox_"+password, to.User.Username(), "the password that databases.sql gives the role")
		at, err := url.Parse(super)
		require.NoError(t, err)
		at.User, at.Path = url.User(to.User.Username()), to.Path
		return at.String()
	}
	project := compose(t)
	databases := ""
	for name, job := range project.Services {
		if strings.HasPrefix(name, "setup-databases") {
			databases += *job.Environment["DATABASES"] + " "
		}
	}
	createDatabases(t, conn, databases)
	for _, s := range services.All() {
		environment := project.Services["setup-"+s.Name].Environment
		require.NotContains(t, project.Services[s.Name].Environment, "MIGRATE_DATABASE_URL", "the owner's password")
		require.Equal(t, environment["DATABASE_URL"], project.Services[s.Name].Environment["DATABASE_URL"])
		cfg := eventing.Config{
			DatabaseURL: config.Secret(here(*environment["DATABASE_URL"])),
			MigrateURL:  config.Secret(here(*environment["MIGRATE_DATABASE_URL"])),
		}
		require.NoError(t, cfg.Migrate(t.Context(), io.Discard, s.Migrations...))
	}
	createDatabases(t, conn, databases+"  newcomer:20")

	try := func(dsn, sql string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = conn.Exec(t.Context(), sql)
		return err
	}
	customer := here(*project.Services["customer"].Environment["DATABASE_URL"])
	notification := here(*project.Services["notification"].Environment["DATABASE_URL"])
	newcomer := here("postgres://twinbox_newcomer_owner:newcomer_owner@x/twinbox_newcomer")
	require.NoError(t, try(customer, `select count(*) from public.outbox`))
	require.NoError(t, try(notification, `select count(*) from public.mail`))
	require.NoError(t, try(newcomer, `create table public.points ()`))
	for _, c := range []struct{ dsn, sql string }{
		{strings.Replace(customer, "/twinbox_customer?", "/twinbox_notification?", 1), `select 1`},
		{strings.Replace(newcomer, "/twinbox_newcomer?", "/twinbox_customer?", 1), `select 1`},
		{strings.Replace(notification, "/twinbox_notification?", "/postgres?", 1), `select 1`},
		{strings.Replace(notification, "/twinbox_notification?", "/template1?", 1), `select 1`},
		{customer, `drop table public.users`},
		{customer, `delete from public.operator_action`},
		{customer, `create temporary table t ()`},
	} {
		var refused *pgconn.PgError
		require.ErrorAs(t, try(c.dsn, c.sql), &refused, c.sql)
		require.Equal(t, "42501", refused.Code, "%s: %s", c.sql, refused.Message)
	}
	var limit int
	require.NoError(t, conn.QueryRow(t.Context(),
		`select rolconnlimit from pg_roles where rolname = 'twinbox_newcomer'`).Scan(&limit))
	require.Equal(t, 20, limit)
}
