package relay

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

func TestRunRefusesBadConfigurationAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		PublishTimeout: time.Minute, MaxSilence: time.Minute, BatchSize: -1, Retention: time.Second,
	})
	var refused *CheckError
	require.ErrorAs(t, err, &refused)
	for _, code := range []string{
		"database", "publisher", "publish_timeout", "batch_size", "retention", "max_silence",
	} {
		require.True(t, refused.Has(code), code)
	}
	require.ErrorContains(t, err, "outbox refuses to work: database: ")
}

func TestRunRefusesServersOnWhichEventsWouldBeLost(t *testing.T) {
	t.Parallel()
	const commitEarly = `do $$ begin
		execute format('alter database %I set synchronous_commit = off', current_database()); end $$`
	for sql, code := range map[string]string{
		commitEarly: "synchronous_commit",

		`alter sequence outbox_position_seq cache 20`:    "sequence",
		`alter sequence outbox_position_seq increment 2`: "sequence",
		`alter sequence outbox_position_seq cycle`:       "sequence",
		`alter table outbox alter xid drop default`:      "xid_default",
		`alter table outbox_held set unlogged`:           "unlogged",
		`alter table outbox_discarded set unlogged`:      "unlogged",
		`alter table outbox_1000001 set unlogged`:        "unlogged",
		`delete from outbox_cursor`:                      "schema",
		`drop table outbox_cursor`:                       "schema",
		subscribeSQL:                                     "subscription_target",
	} {
		t.Run(code+": "+sql, func(t *testing.T) {
			t.Parallel()
			pool := newDatabase(t)
			execSQL(t, pool, sql)
			t.Cleanup(func() { // otherwise the database cannot be dropped
				_, err := pool.Exec(context.Background(), `drop subscription if exists other`)
				require.NoError(t, err)
			})
			require.Len(t, requireRefused(t, testRelayConfig(t, pool, newLedger()), code), 1)
		})
	}
}

const subscribeSQL = `
create subscription other connection '' publication p with (connect = false, slot_name = none, enabled = false);
set allow_system_table_mods = on;
insert into pg_subscription_rel (srsubid, srrelid, srsubstate)
select oid, 'outbox'::regclass, 'r' from pg_subscription where subname = 'other'`

// A pooler gives each transaction another backend.
func TestConnectRefusesAPooler(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(pool.Config().ConnString())
		if err != nil {
			return nil, err
		}
		config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
			return pgproto3.NewFrontend(&otherBackend{Reader: r}, w)
		}
		return pgx.ConnectConfig(ctx, config)
	}
	requireRefused(t, cfg, "transaction_pooler")
}

type otherBackend struct {
	io.Reader
	changed bool
}

func (o *otherBackend) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	keyData := []byte{'K', 0, 0, 0, 12} // its kind and length, before the process id
	if at := bytes.Index(b[:n], keyData); at >= 0 && !o.changed {
		o.changed = true
		b[at+len(keyData)+3]++
	}
	return n, err
}

func TestConnectRefusesAnotherEncoding(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	name := pool.Config().ConnConfig.Database + "_ascii"
	execSQL(t, pool, `create database `+name+` encoding 'SQL_ASCII' locale 'C' template template0`)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(pool.Config().ConnString())
		if err != nil {
			return nil, err
		}
		config.Database = name
		return pgx.ConnectConfig(ctx, config)
	}
	requireRefused(t, cfg, "server_encoding", "schema")
	execSQL(t, pool, `drop database `+name+` with (force)`)
}

func TestConnectRefusesTheWrongColumnOrder(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	execSQL(t, pool, `drop table public.outbox;
		create table public.outbox (position bigint not null generated always as identity, xid xid8 not null default '1',
			primary key (position)) partition by range (position)`)
	requireRefused(t, testRelayConfig(t, pool, newLedger()), "column_order", "xid_default")
}
