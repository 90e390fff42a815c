package relay

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/dev/waittest"
	"example.com/twinbox/engine/outbox"
)

// countingDB counts notifications.
type countingDB struct {
	*pgxpool.Pool
	sent atomic.Int32
}

func (d *countingDB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	d.sent.Add(1)
	return d.Pool.Exec(ctx, sql, args...)
}

// A relay that follows tells the one that leads, which does not poll to speak of, what its own process has committed.
func TestAFollowerWakesTheLeader(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen, cfg.PollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	cfg.Wake = nil // nothing is written where it leads
	leader := startRelay(t, cfg)
	waittest.Until(t, leader.leads)
	cfg.Wake = o.Wake()
	follower := startRelay(t, cfg)
	waittest.Until(t, follower.follows)
	for n := range 3 {
		commit(t, o, pool, event("k"))
		o.Committed()
		l.AwaitDistinct(t, n+1)
	}
	require.False(t, follower.leads())
}

// A leader that waits hears of the end of its session, and leads again before its next poll would have told it.
func TestALeaderAtRestHearsTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Listen, cfg.PollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	r := startRelay(t, cfg)
	waittest.Until(t, r.leads)
	endLeadersSession(t, pool)
	waittest.Until(t, func() bool {
		return number(t, pool, `select epoch from outbox_cursor`) == 2
	})
}

// A relay that listens and is told nothing polls on the same session, again and again.
func TestALeaderThatIsToldNothingPolls(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen = true
	r := startRelay(t, cfg)
	waittest.Until(t, r.leads)
	for n := range 5 {
		commit(t, o, pool, event("k"))
		l.AwaitDistinct(t, n+1)
	}
	require.Equal(t, int64(1), number(t, pool, `select epoch from outbox_cursor`), "on one session")
}

// A process without a relay tells another process's relay, which does not poll to speak of.
func TestNotifierWakesAnotherProcess(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Listen, cfg.PollMin, cfg.PollMax, cfg.Lease = true, time.Hour, time.Hour, 4*time.Hour
	r := startRelay(t, cfg)
	waittest.Until(t, r.leads)
	db := &countingDB{Pool: pool}
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	n := &outbox.Notifier{Wake: o.Wake(), DB: db, Every: 50 * time.Millisecond}
	group.Go(func() error { return n.Run(ctx) })
	began := time.Now()
	for i := range 100 {
		commit(t, o, pool, event("k"))
		o.Committed()
		if i == 0 {
			l.AwaitDistinct(t, 1)
		}
	}
	l.AwaitDistinct(t, 100)
	took := time.Since(began)
	require.LessOrEqual(t, time.Duration(db.sent.Load()-1)*n.Every, took+n.Every, "at most one per interval")
	cancel()
	require.NoError(t, group.Wait())
}
