package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/testkit"
)

const (
	testTopic   = outboxtest.Topic
	testTimeout = 30 * time.Second // for what is certain to happen
	tick        = 2 * time.Millisecond
)

var (
	newOutbox     = outboxtest.New
	newDatabase   = outboxtest.Database
	newEvent      = outboxtest.Event
	commit        = outboxtest.Commit
	addMany       = outboxtest.CommitMany
	markPublished = outboxtest.MarkPublished
	begin         = outboxtest.Begin
	dial          = outboxtest.Dial
)

func migrated(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	_, err := migrations.Apply(t.Context(), dsn, migrations.Outbox)
	require.NoError(t, err)
	return openPool(t, dsn)
}

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func addIn(t testing.TB, o *outbox.Outbox, tx pgx.Tx, key string) {
	t.Helper()
	_, err := o.Add(t.Context(), tx, newEvent(key))
	require.NoError(t, err)
}

func acquireConn(t testing.TB, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return conn.Conn()
}

func columnOf[T any](t testing.TB, q interface {
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

func number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func awaitNumber(t testing.TB, pool *pgxpool.Pool, want int64, sql string, args ...any) {
	t.Helper()
	testkit.Until(t, func() bool { return number(t, pool, sql, args...) == want }, sql)
}

func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// newLeader deposes the earlier relay.
func newLeader(t testing.TB, cfg Config) *leader {
	t.Helper()
	return leadOn(t, cfg, nil)
}

// leadOn opens a session if conn is nil.
func leadOn(t testing.TB, cfg Config, conn *pgx.Conn) *leader {
	t.Helper()
	cfg.BatchSize = 10
	r, err := New(cfg)
	require.NoError(t, err)
	if conn == nil {
		conn, err = r.connect(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { closeSession(context.Background(), conn) })
	}
	l, err := r.lead(t.Context(), conn)
	require.NoError(t, err)
	return l
}

func execSQL(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// parkAll holds all rows, and parks their keys.
func parkAll(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	execSQL(t, pool, `insert into outbox_held select topic, key, position from outbox`)
	execSQL(t, pool, `insert into outbox_parked (topic, key, reason, permanent, retry_at)
		select distinct topic, key, 'down', false, now() from outbox`)
}

// requireRefused runs a relay that must refuse to work, with these problems.
func requireRefused(t testing.TB, cfg Config, codes ...string) []Problem {
	t.Helper()
	r, err := New(cfg)
	require.NoError(t, err)
	var refused *CheckError
	require.ErrorAs(t, r.Run(deadline(t)), &refused)
	for _, code := range codes {
		require.True(t, refused.Has(code), refused.Error())
	}
	return refused.Problems
}

func pause(t testing.TB, pool *pgxpool.Pool, by, reason string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return Pause(t.Context(), tx, by, reason)
	}))
}

func depose(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	execSQL(t, pool, `update outbox_cursor set epoch = epoch + 1`)
}

func (l *leader) drain(t testing.TB) int {
	t.Helper()
	count := func() int { return int(testutil.ToFloat64(l.metrics.published.WithLabelValues(testTopic))) }
	for before := count(); ; {
		result, err := l.round(t.Context())
		require.NoError(t, err)
		if result == resting {
			require.NoError(t, l.finish(t.Context()))
			return count() - before
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool { return failure.Sleep(ctx, d) == nil }

func (c *cursor) store(
	ctx context.Context, w *window, also *pgx.Batch,
) (paused bool, err error) {
	return c.storePage(ctx, w, nil, also)
}
