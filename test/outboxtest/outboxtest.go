// Package outboxtest is what the tests of the outbox's packages share: databases with events in them, and a broker that
// writes down what it takes.
package outboxtest

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

const (
	// Timeout is how long a test waits for what is certain to happen.
	Timeout = 30 * time.Second
	// Tick is how often it asks where nothing tells it.
	Tick = 2 * time.Millisecond
	// Topic is that of [Event].
	Topic = "test.events.v1"
)

// New gives an outbox with a source.
func New(t testing.TB) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(outbox.Config{Source: "/test"})
	require.NoError(t, err)
	return o
}

// Database gives an empty outbox, and what else is migrated.
func Database(t testing.TB, more ...migrations.Set) *pgxpool.Pool {
	t.Helper()
	return pgtest.New(t, append([]migrations.Set{migrations.Outbox}, more...)...)
}

// Migrated is [Database] on a server of the test's own.
func Migrated(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	_, err := migrations.Apply(t.Context(), dsn, migrations.Outbox)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// SmallPartitions makes table partitions of eight rows.
var SmallPartitions = migrations.Set{Name: "small", FS: fstest.MapFS{"0001_small.sql": {Data: []byte(`-- +goose Up
drop table public.outbox_1, public.outbox_1000001, public.outbox_2000001, public.outbox_3000001;
create table public.outbox_1  partition of public.outbox for values from (1) to (9);
create table public.outbox_9  partition of public.outbox for values from (9) to (17);
create table public.outbox_17 partition of public.outbox for values from (17) to (25);
create table public.outbox_25 partition of public.outbox for values from (25) to (33);
`)}}}

// Event is an event of a key.
func Event(key string) event.Event {
	return event.Event{Type: "test.happened.v1", Topic: Topic, Key: key, Data: []byte(`{"n":1}`)}
}

// Commit adds the events in a transaction of their own.
func Commit(t testing.TB, o *outbox.Outbox, pool *pgxpool.Pool, events ...event.Event) []outbox.Added {
	t.Helper()
	var added []outbox.Added
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		added, err = o.Add(t.Context(), tx, events...)
		return err
	})
	require.NoError(t, err)
	return added
}

// CommitMany commits n events over so many keys, in several transactions.
func CommitMany(t testing.TB, o *outbox.Outbox, pool *pgxpool.Pool, n, keys int) {
	t.Helper()
	var events []event.Event
	for i := range n {
		events = append(events, Event(fmt.Sprintf("k%d", i%keys)))
		if len(events) == 50 || i == n-1 {
			Commit(t, o, pool, events...)
			events = nil
		}
	}
}

// Add adds an event of a key to a transaction.
func Add(t testing.TB, o *outbox.Outbox, tx pgx.Tx, key string) {
	t.Helper()
	_, err := o.Add(t.Context(), tx, Event(key))
	require.NoError(t, err)
}

// Begin gives a transaction that is rolled back with the test.
func Begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// MarkPublished makes all committed rows published, as a relay does that has sent them.
func MarkPublished(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update public.outbox_cursor set done = pg_current_snapshot(), win = null,
    mark_x = mark_x || pg_current_xact_id(), mark_h = mark_h || pg_sequence_last_value('public.outbox_position_seq')`)
	require.NoError(t, err)
}

// MarkPublishedTo opens a window with all committed rows, of which those up to a position are published.
func MarkPublishedTo(t testing.TB, pool *pgxpool.Pool, position int64) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update public.outbox_cursor set win = pg_current_snapshot(), win_pos = $1`,
		position)
	require.NoError(t, err)
}

// Dial opens a session of its own on the pool's database.
func Dial(t testing.TB, pool *pgxpool.Pool) func(context.Context) (*pgx.Conn, error) {
	t.Helper()
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, pgtest.DSN(pool)) }
}

// Acquire takes a connection of the pool until the test ends.
func Acquire(t testing.TB, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return conn.Conn()
}

// Number reads one.
func Number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// Column reads one.
func Column[T any](t testing.TB, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string, args ...any,
) []T {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return list
}

// Deadline ends when a test has waited for long enough.
func Deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	return ctx
}
