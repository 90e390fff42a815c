package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func endLeadersSession(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Equal(t, int64(1), number(t, pool, `select count(*) from (
		select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory' and l.granted
			and l.objid = $1::int::oid and l.database = (select oid from pg_database where datname = current_database())
		) x`, lockClass))
}

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
	commit(t, o, pool, newEvent("k"))
	l.AwaitDistinct(t, 1)
	t.Logf("next event published %s after the kill", time.Since(killed))
	require.Less(t, time.Since(killed), testLease/4)
	require.Equal(t, int64(2), number(t, pool, `select epoch from outbox_cursor`))
}

// A follower publishes the same rows, then the late call's records follow. They are duplicates.
func TestALeaderWithoutItsSessionSendsNothingMore(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"all taken": nil, "no answer": errors.New("no answer")} {
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
			require.LessOrEqual(t, len(wire), 40+10, "the one late page and no other")
		})
	}
}

type both struct{ own, broker *ledger }

func (b both) Publish(topic string, msgs ...*message.Message) error {
	b.broker.Take(topic, msgs)
	return b.own.Publish(topic, msgs...)
}

func (both) Close() error { return nil }
