// Package outboxtest makes databases with events, and tests which events a transaction has added.
package outboxtest

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// Topic is the topic of [Event].
const Topic = "test.events.v1"

// New returns an outbox with a source.
func New(t testing.TB) *outbox.Outbox {
	t.Helper()
	return Checked(t, nil)
}

// Checked returns an outbox with a source that compares each event with its contract.
func Checked(t testing.TB, validate func(event.Event) error) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(outbox.Config{Source: "/test", Validate: validate})
	require.NoError(t, err)
	return o
}

// Database returns a database with an empty outbox and more tables.
func Database(t testing.TB, more ...migrations.Set) *pgxpool.Pool {
	t.Helper()
	return pgtest.New(t, append([]migrations.Set{migrations.Outbox}, more...)...)
}

// SmallPartitions makes table partitions of eight rows.
var SmallPartitions = migrations.Set{Name: "small", FS: fstest.MapFS{"0001_small.sql": {Data: []byte(`-- +goose Up
drop table public.outbox_1, public.outbox_1000001, public.outbox_2000001, public.outbox_3000001;
create table public.outbox_1  partition of public.outbox for values from (1) to (9);
create table public.outbox_9  partition of public.outbox for values from (9) to (17);
create table public.outbox_17 partition of public.outbox for values from (17) to (25);
create table public.outbox_25 partition of public.outbox for values from (25) to (33);
`)}}}

func Event(key string) event.Event {
	return event.Event{Type: "test.happened.v1", Topic: Topic, Key: key, Data: []byte(`{"n":1}`)}
}

// Commit adds the events in one transaction.
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

// CommitMany commits n events over that many keys, in several transactions.
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

// Begin starts a transaction that the test's end rolls back.
func Begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// MarkPublished marks all committed rows as published.
func MarkPublished(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update public.outbox_cursor set done = pg_current_snapshot(), win = null,
    mark_x = mark_x || pg_current_xact_id(), mark_h = mark_h || pg_sequence_last_value('public.outbox_position_seq')`)
	require.NoError(t, err)
}

// Dial returns a function that opens a new session.
func Dial(t testing.TB, pool *pgxpool.Pool) func(context.Context) (*pgx.Conn, error) {
	t.Helper()
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, pgtest.DSN(pool)) }
}
