package relay

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

func TestRelayPublishesInOrder(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	addMany(t, o, pool, 500, 7)
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize = 64
	r := startRelay(t, cfg)
	l.AwaitDistinct(t, 500)
	addMany(t, o, pool, 300, 7)
	wire := l.AwaitDistinct(t, 800)
	r.stop()
	requireAll(t, pool, wire)
	require.Len(t, wire, 800, "without a fault nothing is sent twice")

	addMany(t, o, pool, 10, 7)
	startRelay(t, cfg)
	wire = l.AwaitDistinct(t, 810)
	require.Len(t, wire, 810, "nor after a clean stop")
}

func TestRelaySendsEachTopicItsOwn(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	events := make([]event.Event, 30)
	for i := range events {
		events[i] = newEvent("k")
		events[i].Topic = fmt.Sprintf("topic.%d", i%3)
	}
	commit(t, o, pool, events...)
	startRelay(t, testRelayConfig(t, pool, l))
	wire := l.AwaitDistinct(t, 30)
	requireAll(t, pool, wire)
	counts := map[string]int{}
	for _, e := range wire {
		counts[e.Topic]++
	}
	require.Equal(t, map[string]int{"topic.0": 10, "topic.1": 10, "topic.2": 10}, counts)
}

func TestAWindowIsStoredBeforeItsFirstRecordIsSent(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	stored := make(chan int64, 1)
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		if call == 1 {
			stored <- number(t, pool, `select count(*) from outbox_cursor where win is not null and win_pos = 0`)
		}
		return nil
	})
	commit(t, o, pool, newEvent("k"))
	startRelay(t, testRelayConfig(t, pool, l))
	require.Equal(t, int64(1), <-stored)
}

func TestRelayIsUnhealthyWhenNothingMoves(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(func(int, string, []*message.Message) error { return errors.New("no broker") })
	cfg := testRelayConfig(t, pool, l)
	cfg.patience, cfg.PublishTimeout, cfg.MaxSilence = time.Minute, 100*time.Millisecond, 200*time.Millisecond
	r := startRelay(t, cfg)
	testkit.Until(t, r.leads)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	commit(t, o, pool, newEvent("k"))
	testkit.Until(t, func() bool { return r.unwell(t, "no broker") })
	require.Zero(t, number(t, pool, `select count(*) from outbox_parked`), "waiting holds up no other key")
	l.Follow(nil)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	r.stop()
	require.ErrorContains(t, r.Healthy(t.Context()), "does not run")
}

func TestARelayIsUnhealthyWithoutALeader(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	lock, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `select from outbox_cursor for update`)
	require.NoError(t, err)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.MaxSilence = time.Hour
	r := startRelay(t, cfg)
	awaitNumber(t, pool, 1, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and query like '%epoch + 1%'`)
	require.ErrorContains(t, r.Healthy(t.Context()), "neither led nor seen a leader yet")
	require.NoError(t, lock.Rollback(t.Context()))
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	require.Positive(t, number(t, pool, `select epoch from outbox_cursor`))
}

func TestRelayWaitsForALatePublisher(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	release := make(chan struct{})
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		if call == 1 {
			<-release
		}
		return nil
	})
	addMany(t, o, pool, 20, 3)
	cfg := testRelayConfig(t, pool, l)
	cfg.PublishTimeout, cfg.Lease = 30*time.Millisecond, time.Second
	cfg.BatchSize = 10
	r := startRelay(t, cfg)
	testkit.Until(t, func() bool { return errors.Is(r.lastError(), errPublishTimeout) })
	require.NoError(t, r.Healthy(t.Context()))
	require.Equal(t, 1, l.CallCount())
	close(release)
	wire := l.AwaitDistinct(t, 20)
	requireAll(t, pool, wire)
	require.LessOrEqual(t, len(wire), 20+cfg.BatchSize)
}

// No session begins before a late call ends: its records could follow the session's.
func TestNoSessionBeginsBesideALateCall(t *testing.T) {
	t.Parallel()
	cfg := testRelayConfig(t, newDatabase(t), newLedger())
	cfg.Connect = func(context.Context) (*pgx.Conn, error) {
		t.Error("the relay connects")
		return nil, errors.New("no database")
	}
	cfg.PublishTimeout = time.Millisecond
	r, err := New(cfg)
	require.NoError(t, err)
	r.call = &publishCall{ended: make(chan struct{})}
	require.ErrorIs(t, r.runSession(t.Context()), errPublishTimeout)
}
