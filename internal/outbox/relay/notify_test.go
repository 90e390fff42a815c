package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func TestAFollowerWakesTheLeader(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen, cfg.pollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	cfg.Wake = nil // no commits where it leads
	leader := startRelay(t, cfg)
	testkit.Until(t, leader.leads)
	cfg.Wake = o.Wake()
	follower := startRelay(t, cfg)
	testkit.Until(t, follower.follows)
	for n := range 3 {
		commit(t, o, pool, newEvent("k"))
		o.Committed()
		l.AwaitDistinct(t, n+1)
	}
	require.False(t, follower.leads())
}

func TestALeaderAtRestHearsTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Listen, cfg.pollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	r := startRelay(t, cfg)
	testkit.Until(t, r.leads)
	endLeadersSession(t, pool)
	awaitNumber(t, pool, 2, `select epoch from outbox_cursor`)
}

func TestAFollowerNotifiesAtALimitedRate(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen, cfg.pollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	testkit.Until(t, startRelay(t, cfg).leads)
	cfg.Wake = o.Wake()
	testkit.Until(t, startRelay(t, cfg).follows)
	heard := acquireConn(t, pool)
	_, err := heard.Exec(t.Context(), `listen outbox`)
	require.NoError(t, err)
	began := time.Now()
	for i := range 100 {
		commit(t, o, pool, newEvent("k"))
		o.Committed()
		if i == 0 {
			l.AwaitDistinct(t, 1)
		}
	}
	l.AwaitDistinct(t, 100)
	took, sent := time.Since(began), 0
	execSQL(t, pool, `select pg_notify('outbox', 'last')`)
	for {
		n, err := heard.WaitForNotification(t.Context())
		require.NoError(t, err)
		if n.Payload == "last" {
			break
		}
		sent++
	}
	require.LessOrEqual(t, time.Duration(sent-2)*notifyEvery, took, "one per interval, and one on the way")
}

func TestALeaderThatFreezesUnderNotificationsIsReplaced(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen, cfg.Lease, cfg.PublishTimeout = true, 10*time.Second, time.Second
	r, err := New(cfg)
	require.NoError(t, err)
	frozen, err := r.connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { closeSession(context.Background(), frozen) })
	leads, err := tryLock(t.Context(), frozen)
	require.NoError(t, err)
	require.True(t, leads)
	_, err = frozen.Exec(t.Context(), listenSQL)
	require.NoError(t, err)
	cfg.Wake = o.Wake()
	follower := startRelay(t, cfg)
	testkit.Until(t, follower.follows)
	commit(t, o, pool, newEvent("k"))
	go func() {
		for commits := time.NewTicker(time.Millisecond); t.Context().Err() == nil; <-commits.C {
			o.Committed()
		}
	}()
	testkit.Until(t, follower.leads)
	l.AwaitDistinct(t, 1)
}

func TestNotificationsAreNotKept(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	l := newLeader(t, testRelayConfig(t, pool, newLedger()))
	follower, err := l.connect(t.Context())
	require.NoError(t, err)
	defer closeSession(t.Context(), follower)
	keeps := func(conn *pgx.Conn) bool {
		for range 3 {
			execSQL(t, pool, `select pg_notify('outbox', '')`)
		}
		require.NoError(t, conn.Ping(t.Context()))
		ended, end := context.WithCancel(t.Context())
		end()
		_, err := conn.WaitForNotification(ended)
		return err == nil
	}
	require.False(t, keeps(follower))
	require.True(t, keeps(l.conn), "two are left")
	_, err = l.round(t.Context())
	require.NoError(t, err)
	woken, err := l.awaitCommit(t.Context(), l.conn, time.Millisecond)
	require.NoError(t, err)
	require.False(t, woken)
}
