package inbox_test

import (
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// One session knows the plans of all statements.
func (b *bundle) onOneConnection(t *testing.T) *pgxpool.Pool {
	t.Helper()
	cfg := b.Pool.Config()
	cfg.MinConns, cfg.MaxConns = 1, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return pool
}

func handledBatches(t *testing.T, b *bundle, batches int) {
	t.Helper()
	_, handle := b.handle(t, queueing(nil))
	var before []event.Event
	version := int64(0)
	for range batches {
		events := before
		for range 3 {
			version++
			e := newEvent()
			e.Version = version
			events = append(events, e)
		}
		msgs := make([]*message.Message, len(events))
		for i, e := range events {
			msgs[i] = record(t, e, version)
		}
		handled, err := handle(t.Context(), msgs)
		require.NoError(t, err)
		require.Equal(t, len(msgs), handled)
		before = events[len(events)-2:]
	}
}

// Planning a statement at each execution reads every partition.
func TestABatchPlansNothingAnew(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order, b.Config.Batch = inbox.Strict, 5
	session := b.onOneConnection(t)
	handledBatches(t, b, 20)
	rows, err := session.Query(t.Context(), `
select statement, generic_plans, custom_plans from pg_prepared_statements where generic_plans + custom_plans > 10`)
	require.NoError(t, err)
	type plans struct {
		Statement       string
		Generic, Custom int
	}
	often, err := pgx.CollectRows(rows, pgx.RowToStructByPos[plans])
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(often), 4, "the keys, the ids, the hashes, the new versions")
	for _, p := range often {
		require.LessOrEqual(t, p.Custom, 5, "the server tries five before it decides: %s", p.Statement)
	}
}

// A partition has no statistics in its first minutes.
func TestABatchReadsOnlyItsOwnRows(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order, b.Config.Batch = inbox.Strict, 5
	const remembered = 5_000
	b.Exec(t, fmt.Sprintf(`
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash)
select 'test', 'old-' || n, clock_timestamp(), 't.v1', '\x01' from generate_series(1, %d) as n`, remembered))
	b.Exec(t, fmt.Sprintf(`
insert into public.inbox_key (consumer, key, version)
select 'test', 'old-' || n, 1 from generate_series(1, %d) as n`, remembered))
	session := b.onOneConnection(t)
	read := func() int {
		_, err := session.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		require.NoError(t, err)
		return b.Count(t, `
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables where relname like 'inbox%'`)
	}
	before := read()
	const batches = 20
	handledBatches(t, b, batches)
	require.Less(t, read()-before, 50*batches)
}
