package relay

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/test/outboxtest"
)

// newPatientLeader's session would wait for locks for ever: only the partition changes' own limits apply.
func newPatientLeader(t testing.TB, pool *pgxpool.Pool) (*leader, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.PartitionSize = 8
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	l := newLeader(t, cfg)
	l.maintainAt = time.Now().Add(time.Hour)
	_, err := l.conn.Exec(t.Context(), `set lock_timeout = 0; set statement_timeout = 0`)
	require.NoError(t, err)
	return l, log
}

// Neither the maintenance nor the write may take until testTimeout.
func (l *leader) besides(t testing.TB, write func(context.Context) error) {
	t.Helper()
	l.maintainAt = time.Time{}
	group, ctx := errgroup.WithContext(deadline(t))
	group.Go(func() error { return l.maintain(ctx) })
	group.Go(func() error { return write(ctx) })
	require.NoError(t, group.Wait())
}

// A drop locks the whole outbox. With an open writer it is postponed.
func TestADropGivesWay(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t, outboxtest.SmallPartitions)
	l, log := newPatientLeader(t, pool)
	addMany(t, o, pool, 25, 3)
	readPast(t, l, 24)
	require.NoError(t, l.changePartitions(t.Context()))
	execSQL(t, pool, `update outbox_partition set published_at = '2000-01-01'`)

	busy := begin(t, pool)
	addIn(t, o, busy, "busy")
	l.besides(t, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := o.Add(ctx, tx, newEvent("other"))
			return err
		})
	})
	require.Equal(t, int64(9), uppers(t, l)[0])
	require.Equal(t, 1, strings.Count(log.String(), "partitions not maintained"), log.String())
	require.InDelta(t, 1, testutil.ToFloat64(l.metrics.neglected), 0)
	require.Equal(t, 1, l.drain(t), "the relay publishes what others wrote")

	require.NoError(t, busy.Commit(t.Context()))
	l.besides(t, func(context.Context) error { return nil })
	require.Equal(t, int64(33), uppers(t, l)[0], "all three, at the next maintenance")
	require.Equal(t, 1, l.drain(t))
}

func TestMakingAPartitionGivesWay(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t, outboxtest.SmallPartitions)
	l, log := newPatientLeader(t, pool)
	addMany(t, o, pool, 10, 3)
	l.drain(t)
	before := uppers(t, l)

	busy := begin(t, pool)
	_, err := busy.Exec(t.Context(), `lock table outbox in share update exclusive mode`)
	require.NoError(t, err)
	l.besides(t, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := o.Add(ctx, tx, newEvent("other"))
			return err
		})
	})
	require.Equal(t, before, uppers(t, l))
	require.Contains(t, log.String(), "partitions not maintained")
	require.InDelta(t, 1, testutil.ToFloat64(l.metrics.neglected), 0)
	require.Equal(t, 1, l.drain(t))

	require.NoError(t, busy.Rollback(t.Context()))
	l.besides(t, func(context.Context) error { return nil })
	require.Len(t, uppers(t, l), len(before)+2)
}
