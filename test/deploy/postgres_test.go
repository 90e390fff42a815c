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
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The first start of the database: init.sql on a server, then both migrations with the roles that compose gives them.
func TestInitSQL_LetsEachRoleDoItsOwn(t *testing.T) {
	t.Parallel()
	super := pgtest.DSN(pgtest.New(t))
	conn, err := pgx.Connect(t.Context(), super)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	for statement := range strings.SplitSeq(withoutComments(read(t, "deploy/postgres/init.sql")), ";") {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	// here is the server of compose's URL on this machine.
	here := func(composed string) string {
		t.Helper()
		to, err := url.Parse(composed)
		require.NoError(t, err)
		at, err := url.Parse(super)
		require.NoError(t, err)
		at.User, at.Path = url.User(to.User.Username()), to.Path
		return at.String()
	}
	migrate := func(service string, sets []migrations.Set) {
		t.Helper()
		environment := compose(t).Services[service+"-migrate"].Environment
		cfg := eventing.Config{
			DatabaseURL: config.Secret(here(*environment["DATABASE_URL"])),
			MigrateURL:  config.Secret(here(*environment["MIGRATE_DATABASE_URL"])),
		}
		require.NoError(t, cfg.Migrate(t.Context(), io.Discard, sets...))
	}
	for _, s := range all() {
		migrate(s.Name, s.Migrations)
	}

	try := func(dsn, sql string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = conn.Exec(t.Context(), sql)
		return err
	}
	customer := here(*compose(t).Services["customer"].Environment["DATABASE_URL"])
	notification := here(*compose(t).Services["notification"].Environment["DATABASE_URL"])
	require.NoError(t, try(customer, `select count(*) from public.outbox`))
	require.NoError(t, try(notification, `select count(*) from public.mail`))
	for _, c := range []struct{ dsn, sql string }{
		{strings.Replace(customer, "/twinbox_customer?", "/twinbox_notification?", 1), `select 1`},
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
}

func withoutComments(sql string) string {
	var lines []string
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.Join(lines, "")), ";"))
}
