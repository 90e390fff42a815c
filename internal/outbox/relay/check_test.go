package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
)

func TestRunRefusesBadConfigurationAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		PublishTimeout: time.Minute, MaxSilence: time.Minute, BatchSize: -1, Retention: time.Second,
	})
	var refused *outbox.CheckError
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
	} {
		t.Run(code+": "+sql, func(t *testing.T) {
			t.Parallel()
			pool := newDatabase(t)
			_, err := pool.Exec(t.Context(), sql)
			require.NoError(t, err)
			r, err := New(testRelayConfig(t, pool, newLedger()))
			require.NoError(t, err)
			var refused *outbox.CheckError
			require.ErrorAs(t, r.Run(deadline(t)), &refused)
			require.True(t, refused.Has(code), refused.Error())
			require.Len(t, refused.Problems, 1)
		})
	}
}

func TestConnectRefusesTheWrongColumnOrder(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	_, err := pool.Exec(t.Context(), `drop table public.outbox;
		create table public.outbox (position bigint not null generated always as identity, xid xid8 not null default '1',
			primary key (position)) partition by range (position)`)
	require.NoError(t, err)
	r, err := New(testRelayConfig(t, pool, newLedger()))
	require.NoError(t, err)
	_, err = r.connect(t.Context())
	var refused *outbox.CheckError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Has("column_order"))
	require.True(t, refused.Has("xid_default"), "all problems at once")
}
