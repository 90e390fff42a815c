package relay

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/testkit"
)

func TestAPausedRelayPublishesNothing(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	inTx := func(do func(tx pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), pool, do) }
	var ended Paused
	resume := func() error {
		return inTx(func(tx pgx.Tx) (err error) {
			ended, err = Resume(t.Context(), tx)
			return err
		})
	}
	require.ErrorIs(t, resume(), ErrNotPaused)
	cfg := testRelayConfig(t, pool, l)
	cfg.Scheduled = o
	r := startRelay(t, cfg)
	addMany(t, o, pool, 10, 3)
	l.AwaitDistinct(t, 10)

	pause(t, pool, "ann", "the broker moves")
	require.ErrorIs(t, inTx(func(tx pgx.Tx) error { return Pause(t.Context(), tx, "bob", "") }), ErrPaused)
	awaitCaughtUp(t, pool)
	addMany(t, o, pool, 10, 3)
	addScheduled(t, o, pool, "due", outbox.After(0))
	r.stop()
	r = startRelay(t, cfg)
	testkit.Until(t, r.leads)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	testkit.Until(t, func() bool { // it looks
		return number(t, pool, `select count(*) from pg_stat_activity where application_name = 'outbox relay'
			and datname = current_database() and query like '%paused_at is not null%'`) == 1
	})
	require.Equal(t, 10, distinct(l.AwaitDistinct(t, 10)))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox_scheduled`))

	require.NoError(t, resume())
	require.Equal(t, []string{"ann", "the broker moves"}, []string{ended.By, ended.Reason})
	requireAll(t, pool, l.AwaitDistinct(t, 21))
}

func TestAPauseTakesEffectBetweenPages(t *testing.T) {
	t.Parallel()
	o, pool, broker := newOutbox(t), newDatabase(t), newLedger()
	addMany(t, o, pool, 30, 3)
	broker.Follow(func(call int, _ string, _ []*message.Message) error {
		if call == 1 {
			pause(t, pool, "ann", "now")
		}
		return nil
	})
	l := newLeader(t, testRelayConfig(t, pool, broker)) // pages of ten
	require.Equal(t, 10, l.drain(t))
	require.Equal(t, int64(10), number(t, pool, `select win_pos from outbox_cursor`), "what was taken is recorded")
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := Resume(t.Context(), tx)
		return err
	}))
	require.Equal(t, 20, l.drain(t))
	wire, _ := broker.Snapshot()
	requireAll(t, pool, wire)
	require.Len(t, wire, 30)
}

func TestALeaderThatWaitsForAPersonRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a")
	w.exec(`update outbox_cursor set paused_at = now()`)
	w.dueAt = time.Now().Add(-time.Hour) // seen before the pause
	w.settle()
	require.Equal(t, time.Hour, w.restFor(time.Hour))

	w.exec(`update outbox_cursor set paused_at = null`)
	w.add("a")
	_, err := w.round(t.Context())
	require.NoError(t, err)
	require.True(t, w.open.complete)
	w.exec(`delete from outbox_point`)
	w.log.cut(0, 0)
	w.ends.lookAt = time.Time{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running errgroup.Group
	running.Go(func() error { return w.run(ctx) })
	awaitNumber(t, w.pool, 1, `select count(*) from outbox_cursor where win is null and refused is not null`)
	stop()
	require.ErrorIs(t, running.Wait(), context.Canceled)
	require.Equal(t, time.Hour, w.restFor(time.Hour))
}
