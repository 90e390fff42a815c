package outbox

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const testTopic = "test.events.v1"

func newOutbox(t testing.TB) *Outbox {
	t.Helper()
	o, err := New(Config{Source: "/test"})
	require.NoError(t, err)
	return o
}

func newDatabase(t testing.TB, more ...migrations.Set) *pgxpool.Pool {
	t.Helper()
	return pgtest.New(t, append([]migrations.Set{migrations.Outbox}, more...)...)
}

func newEvent(key string) event.Event {
	return event.Event{Type: "test.happened.v1", Topic: testTopic, Key: key, Data: []byte(`{"n":1}`)}
}

func commit(t testing.TB, o *Outbox, pool *pgxpool.Pool, events ...event.Event) []Added {
	t.Helper()
	var added []Added
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		added, err = o.Add(t.Context(), tx, events...)
		return err
	})
	require.NoError(t, err)
	return added
}

func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}
