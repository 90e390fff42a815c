package relay

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// leaderLockSQL finds the session that holds the lock of the present epoch.
const leaderLockSQL = `
from pg_locks l cross join public.outbox_cursor c
where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted and l.classid = $1::int::oid
    and l.objid = c.epoch::int::oid and l.database = (select oid from pg_database where datname = current_database())`

// endLeadersSession ends the session of the leader and no other.
func endLeadersSession(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Equal(t, int64(1), number(t, pool,
		`select count(*) from (select pg_terminate_backend(l.pid) `+leaderLockSQL+`) x`, lockClass))
}

// A follower sees by the free lock that the leader's process is dead. The lease, of a minute, would tell it much later.
func TestAKilledLeaderIsReplacedBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	o, pool, path := newOutbox(t), newDatabase(t), wirePath(t)
	addMany(t, o, pool, crashEvents, 5)
	leader := startChild(t, childConfig{DSN: pool.Config().ConnString(), Wire: path})
	awaitCaughtUp(t, pool)
	l := newLedger()
	r := startRelay(t, testRelayConfig(t, pool, l))
	testkit.Until(t, r.follows)
	require.NoError(t, leader.Process.Kill())
	killed := time.Now()
	commit(t, o, pool, event("k"))
	l.AwaitDistinct(t, 1)
	t.Logf("next event published %s after the kill", time.Since(killed))
	require.Less(t, time.Since(killed), testLease/4)
	require.Equal(t, int64(2), number(t, pool, `select epoch from outbox_cursor`))
}

// A single instance that is killed and started again in its place finds its own lease, which has not run out.
func TestARestartedRelayDoesNotWaitForItsOwnLease(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, crashEvents, 5)
	before := startChild(t, childConfig{DSN: pool.Config().ConnString(), Wire: wirePath(t)})
	awaitCaughtUp(t, pool)
	require.NoError(t, before.Process.Kill())
	killed := time.Now()
	before.await(t)
	l := newLedger()
	startRelay(t, testRelayConfig(t, pool, l))
	commit(t, o, pool, event("k"))
	l.AwaitDistinct(t, 1)
	require.Less(t, time.Since(killed), testLease/4)
}

// The lock says nothing of a leader that does not hold it: one of an earlier release, or one that found it taken.
func TestALeaseIsWaitedForUnlessItsLeaderHeldTheLock(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	follower, err := connect(t.Context(), dial(t, pool))
	require.NoError(t, err)
	t.Cleanup(func() { closeConn(context.Background(), follower) })
	requireSeen := func(epoch int64, ended bool) {
		t.Helper()
		seen, err := readLeadership(t.Context(), follower)
		require.NoError(t, err)
		require.Equal(t, epoch, seen.epoch)
		require.Equal(t, ended, seen.ended)
		require.Positive(t, seen.remaining)
		s := &session{conn: follower}
		require.NoError(t, s.acquire(t.Context(), "hasty", testLease, leadership{epoch: epoch}))
		require.Nil(t, s.term, "the lease has not run out")
	}

	leader := takeOver(t, pool)
	requireSeen(1, false)
	closeConn(t.Context(), leader.conn)
	testkit.Until(t, func() bool {
		seen, err := readLeadership(t.Context(), follower)
		return err == nil && seen.ended
	})
	requireSeen(1, true)

	// The statement with which a relay of an earlier release takes over.
	_, err = pool.Exec(t.Context(), `update outbox_cursor set epoch = epoch + 1, leader = 'earlier release',
		lease_until = clock_timestamp() + interval '1 minute'`)
	require.NoError(t, err)
	requireSeen(2, false)

	// A stranger's, for all that the leader knows.
	_, err = follower.Exec(t.Context(), `select pg_advisory_lock($1, 3)`, lockClass)
	require.NoError(t, err)
	takeOver(t, pool)
	requireSeen(3, false)
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox_cursor where lock_epoch is null`))
}

// Followers that ask at the same moment do not keep each other from seeing that the lock is free.
func TestFollowersAskBesideEachOther(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	closeConn(t.Context(), takeOver(t, pool).conn)
	awaitNoSession(t, pool)
	one, other := begin(t, pool), begin(t, pool) // asking takes longer
	for _, tx := range []pgx.Tx{one, other} {
		seen, err := readLeadership(t.Context(), tx.Conn())
		require.NoError(t, err)
		require.True(t, seen.ended)
	}
}

// The leader loses its session and lives, with a call of Publish under way. A follower takes over and publishes the
// same rows and those behind them; the late call is appended after them. That costs duplicates, and the first
// occurrences stay in order. For any answer of the late call the old leader sends nothing more.
func TestALeaderWithoutItsSessionSendsNothingMore(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"all taken": nil, "no answer": errors.New("no answer"),
		"some failed": &partialError{Failed: map[int]error{1: errors.New("one partition"), 5: errors.New("one partition")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pool, l := newOutbox(t), newDatabase(t), newLedger()
			l.After = true
			sent, land := make(chan struct{}), make(chan struct{})
			l.Follow(func(call int, _ string, _ []*message.Message) error {
				if call > 1 {
					return nil
				}
				close(sent)
				<-land
				return answer
			})
			addMany(t, o, pool, 30, 4)
			cfg := testRelayConfig(t, pool, l)
			cfg.BatchSize, cfg.Name = 10, "old"
			old := startRelay(t, cfg)
			<-sent
			follower := newLedger()
			cfg.Publisher, cfg.Name = both{follower, l}, "new"
			startRelay(t, cfg)
			endLeadersSession(t, pool)
			follower.AwaitDistinct(t, 30)
			addMany(t, o, pool, 10, 4)
			follower.AwaitDistinct(t, 40)
			awaitCaughtUp(t, pool)
			close(land)
			testkit.Until(t, old.follows)
			wire, _ := l.Snapshot()
			requireAll(t, pool, wire)
			followers, _ := follower.Snapshot()
			require.Len(t, followers, 40)
			require.Len(t, wire, 40+10, "the one late call and no other")
		})
	}
}

// both sends to two ledgers: one's own, and the one that stands for the broker.
type both struct{ own, broker *ledger }

func (b both) Publish(topic string, msgs ...*message.Message) error {
	b.broker.Take(topic, msgs)
	return b.own.Publish(topic, msgs...)
}

func (both) Close() error { return nil }

// A leader that lives and has lost its session is back with another before a follower takes its lease, and what it
// remembers is not sent again. The follower has to see the same free lock twice.
func TestAFollowerLeavesALeaderTimeToComeBack(t *testing.T) {
	t.Parallel()
	r := &Relay{}
	ended := leadership{epoch: 4, remaining: time.Minute, ended: true}
	other := leadership{epoch: 5, remaining: time.Minute, ended: true}
	require.False(t, r.mayLead(leadership{}, ended))
	require.True(t, r.mayLead(ended, ended))
	require.False(t, r.mayLead(ended, other), "it came back, and broke again")
	require.False(t, r.mayLead(ended, leadership{epoch: 5, remaining: time.Minute}))
	require.True(t, r.mayLead(leadership{}, leadership{epoch: 4}), "the lease is over")
	r.led = 5
	require.True(t, r.mayLead(ended, other), "its own")
}
