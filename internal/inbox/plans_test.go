package inbox_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/testkit"
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

// An outage can leave many dead letters before the table has statistics.
func TestABatchReadsOnlyItsOwnDeadLetters(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order, b.Config.Batch = inbox.Strict, 5
	outcomes := map[inbox.Outcome]int{}
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes[o]++ }
	session := b.onOneConnection(t)
	_, handle := b.handle(t, effect)
	handled := 0
	// batches of three keys that continue, of the key held for longest, and of another held key
	batches := func(n int) {
		for range n {
			handled++
			var msgs []*message.Message
			for _, key := range []string{"a", "b", "c", "held-0", fmt.Sprint("held-", handled)} {
				e := newEvent()
				if e.Key, e.Version = key, 1; len(key) == 1 {
					e.Version = int64(handled)
				}
				msgs = append(msgs, record(t, e, int64(handled)))
			}
			_, err := handle(t.Context(), msgs)
			require.NoError(t, err)
		}
	}
	letters(t, session, "held-0", 0, 0)
	batches(10)
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 40, inbox.Parked: 10}, outcomes)
	const stored, asked = 5_000, 20
	letters(t, session, "held-' || n || '", 1, stored)
	letters(t, session, "held-0", stored+1, 2*stored)
	before := b.countReads(t, session)
	batches(asked)
	require.Less(t, b.countReads(t, session)-before, 60*asked)
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 100, inbox.Parked: 50}, outcomes)
}

// countReads counts the rows of dead letters and keys that the session has read.
func (b *bundle) countReads(t *testing.T, session *pgxpool.Pool) int {
	t.Helper()
	_, err := session.Exec(t.Context(), `select pg_stat_force_next_flush()`)
	require.NoError(t, err)
	return b.Count(t, `
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))
    + (select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('dead_letter', 'inbox_key'))
from pg_stat_user_tables where relname in ('dead_letter', 'inbox_key')`)
}

func TestARoundPassesEachParkedKeyOnce(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order = inbox.Strict
	session := b.onOneConnection(t)
	const stuck, resumed = 100, 1_000
	letters(t, session, "a-' || n || '", 1, stuck)
	letters(t, session, "b-' || n || '", stuck+1, stuck+resumed)
	b.Exec(t, `update dead_letter set class = 'parked' where key_start like 'b%'`)
	before := b.countReads(t, session)
	replayer := inbox.NewReplayer(b.Inbox(t), muxOf(effect).HandleMessage)
	require.NoError(t, replayer.ResumeRound(t.Context()))
	require.Equal(t, resumed, b.Count(t, `select count(*) from dead_letter where attempts = 2`))
	require.Less(t, b.countReads(t, session)-before, 50*(stuck+resumed))
}

// letters stores dead letters without a version that hold their keys. The key may name its n.
func letters(t *testing.T, session *pgxpool.Pool, key string, from, to int) {
	t.Helper()
	_, err := session.Exec(t.Context(), fmt.Sprintf(`
insert into public.dead_letter (consumer, event_id, event_type, key, version, headers, payload, topic, partition,
    record_offset, class, code, error, attempts, first_failed_at, holds, remembered)
select 'test', 'old-' || n, 't.v1', convert_to('%s', 'UTF8'), 0, '[]', convert_to(n::text, 'UTF8'), 't', 0,
    n, 'unknown', 'handler_failed', '', 1, clock_timestamp(), true, true
from generate_series(%d, %d) as n`, key, from, to))
	require.NoError(t, err)
	_, err = session.Exec(t.Context(), `insert into public.inbox_key (consumer, key, version, parked_from)
select distinct 'test', convert_from(key, 'UTF8'), 0, 0 from public.dead_letter where holds on conflict do nothing`)
	require.NoError(t, err)
}

type roundTrips struct{ n int }

func (r *roundTrips) count(ctx context.Context) context.Context {
	r.n++
	return ctx
}

func (b *bundle) counting(t *testing.T) *roundTrips {
	t.Helper()
	trips := &roundTrips{}
	cfg := b.Pool.Config()
	cfg.ConnConfig.Tracer = testkit.Tracer{Begin: trips.count}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return trips
}

// Begin travels with point, keys and ids, the writes with the commit. Duplicates take a third, for the comparison.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	const want = 2
	shared := setup(t)
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
		for _, size := range []int{1, 50} {
			b := shared.again(t)
			b.Config.Order, b.Config.Accepts = order, acceptsTestType
			b.Exec(t, beginPoint, 0)
			trips := b.counting(t)
			_, handle := b.handle(t, queueing(nil))
			cost := func(events []event.Event) int {
				trips.n = 0
				handled, err := handle(t.Context(), owned(0, records(t, t.Context(), events...)...))
				require.NoError(t, err)
				require.Equal(t, size, handled)
				return trips.n
			}
			first, second := make([]event.Event, size), make([]event.Event, size)
			for i := range size {
				first[i], second[i] = v(string(rune('a'+i)), 1), v(string(rune('a'+i)), 2)
			}
			require.Equal(t, 1+want, cost(first), "%s, %d: it also takes the partition", order, size)
			require.Equal(t, want, cost(second), "%s, %d", order, size)
			require.Equal(t, want+1, cost(second), "duplicates: %s, %d", order, size)
			if size > 1 {
				third := versions("new", make([]int64, size)...)()
				third[0].Type = ignoredType
				require.Equal(t, want, cost(third), "one is ignored: %s", order)
			}
		}
	}
}
