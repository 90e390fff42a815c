package eventing_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func as(t *testing.T, role, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	address.User = url.User(role)
	return address.String()
}

func TestTheServingRoleOwnsNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	run := func(sql string) { execute(t, pool, sql) }
	var database string
	require.NoError(t, pool.QueryRow(t.Context(), `select current_database()`).Scan(&database))
	owner, serving := database+"_owner", database+"_serving"
	run("create role " + owner + " login; create role " + serving + " login")
	run("alter database " + database + " owner to " + owner)
	run("grant create on schema public to " + serving)
	cfg := environ(t, as(t, serving, pgtest.DSN(pool)), kafkatest.Brokers(t)[0],
		"MIGRATE_DATABASE_URL="+as(t, owner, pgtest.DSN(pool)), "KAFKA_TOPIC_RETENTION=1m", "INBOX_REPLAY_WINDOW=0s",
		"INBOX_RETENTION=1h")
	var out bytes.Buffer
	for range 2 {
		require.NoError(t, cfg.Migrate(t.Context(), &out, sets...))
	}
	again := "0 migrations applied, the schema is up to date\n" + serving + " may serve\n"
	require.True(t, strings.HasSuffix(out.String(), again), out.String())
	run(`drop table public.outbox_3000001`) // one to make; inbox_past is one to drop
	var tomorrow string
	require.NoError(t, pool.QueryRow(t.Context(), `select 'public.inbox_' || to_char(now() at time zone 'UTC'
		+ interval '1 day', 'YYYYMMDD')`).Scan(&tomorrow))
	run(`drop table ` + tomorrow)
	run(`drop table public.inbox_past`) // it ends today: not yet forgotten in the day's first hour
	run(`create table public.inbox_past partition of public.inbox for values from ('2000-01-01') to ('2001-01-01')`)
	run(`alter table public.inbox_past owner to ` + owner)

	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	handled := make(chan int, 1)
	b := open(t, cfg, cfg.Topics(topic)...)
	b.consume(t, eventing.Consumer{
		Name: "test.pings", Topic: topic, Order: inbox.Strict,
		Handlers: pings(func(_ context.Context, _ pgx.Tx, _ event.Event, data pinged) error {
			handled <- data.N
			return nil
		}),
	})
	stop := b.serve(t)
	b.add(t, topic, "k")
	require.Equal(t, 7, <-handled)
	testkit.Until(t, func() bool {
		var made, dropped bool
		err := pool.QueryRow(t.Context(), `select to_regclass('public.outbox_3000001') is not null
			and to_regclass($1) is not null, to_regclass('public.inbox_past') is null`, tomorrow).Scan(&made, &dropped)
		return err == nil && made && dropped
	})
	b.awaitReady(t)

	for statement, code := range map[string]string{
		`drop table public.no_such_profile`:                                                       "42P01",
		`drop table public.outbox`:                                                                "42501",
		`alter table public.inbox add column x int`:                                               "42501",
		`truncate public.dead_letter`:                                                             "42501",
		`create table public.mine ()`:                                                             "42501",
		`update public.outbox set payload = ''`:                                                   "42501",
		`delete from public.outbox`:                                                               "42501",
		`delete from public.outbox_1`:                                                             "42501",
		`select setval('public.outbox_position_seq', 1)`:                                          "42501",
		`update public.operator_action set operator = 'me'`:                                       "42501",
		`delete from public.operator_action`:                                                      "42501",
		`insert into public.migration_outbox (version_id) values (9)`:                             "42501",
		`select public.outbox_drop_partition('outbox_1')`:                                         "55006",
		`select public.outbox_drop_partition('dead_letter')`:                                      "42P01",
		`select public.inbox_drop_day('inbox_key')`:                                               "42P01",
		`select public.inbox_drop_day('inbox_' || to_char(now() at time zone 'UTC', 'YYYYMMDD'))`: "55006",
		`select public.inbox_create_day(now() + interval '1 hour 1 second', 1)`:                   "22023",
	} {
		_, err := b.node.Pool.Exec(t.Context(), statement)
		refused, is := errors.AsType[*pgconn.PgError](err)
		require.True(t, is, "%s: %v", statement, err)
		require.Equal(t, code, refused.Code, statement)
	}
	stop()
	_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), migrations.Lease)
	require.NoError(t, err)
	_, err = migrations.Migration{URL: as(t, serving, pgtest.DSN(pool)), Role: serving}.Run(t.Context())
	require.Error(t, err, "it grants itself nothing")
}
