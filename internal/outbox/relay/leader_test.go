package relay

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/test/testkit"
)

func TestOneRelayLeads(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	relays := []running{
		startRelay(t, testRelayConfig(t, pool, l)), startRelay(t, testRelayConfig(t, pool, l)),
		startRelay(t, testRelayConfig(t, pool, l)),
	}
	addMany(t, o, pool, 200, 5)
	wire := l.AwaitDistinct(t, 200)
	requireAll(t, pool, wire)
	require.Len(t, wire, 200)

	leader, followers := -1, 0
	for i, r := range relays {
		testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
		if r.leads() {
			leader = i
		} else {
			followers++
		}
	}
	require.Equal(t, 2, followers)
	require.Greater(t, testLease, testTimeout)
	relays[leader].stop()
	commit(t, o, pool, newEvent("k0"))
	l.AwaitDistinct(t, 201)
}

func TestStoppedLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	require.True(t, fault.Enabled, "build with -tags faults")
	for point, nth := range map[string]int{
		"relay.publish.before": 1, "relay.publish.after": 1, "relay.store.before": 2, "relay.store.after": 2,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			o, pool := newOutbox(t), newDatabase(t)
			addMany(t, o, pool, crashEvents, 5)
			path := wirePath(t)
			c := childConfig{
				DSN: pool.Config().ConnString(), Wire: path, Point: point, Nth: nth, Stop: true, Lease: 1200 * time.Millisecond,
			}
			sleeper := startChild(t, c)
			awaitStopped(t, sleeper)
			stopped := time.Now()
			epoch := number(t, pool, `select epoch from outbox_cursor`)
			c.startHere(t)
			testkit.Until(t, func() bool { return number(t, pool, `select epoch from outbox_cursor`) > epoch })
			t.Logf("replaced %s after it stopped, with a lease of %s", time.Since(stopped), c.Lease)
			awaitCaughtUp(t, pool)
			addMany(t, o, pool, 5, 5)
			awaitCaughtUp(t, pool)

			state := `select xmin::text::bigint from outbox_cursor`
			before := number(t, pool, state)
			require.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
			awaitNumber(t, pool, 1, `select count(*) from pg_stat_activity where datname = current_database()
					and query like '%pg_try_advisory_lock%' and pid <> pg_backend_pid()`)
			require.Equal(t, before, number(t, pool, state))
			require.Equal(t, epoch+1, number(t, pool, `select epoch from outbox_cursor`))
			wire, err := readWire(path)
			require.NoError(t, err)
			requireAll(t, pool, wire)
			require.LessOrEqual(t, len(wire)-distinct(wire), 2*crashPage)
		})
	}
}

// The server ends a session that is silent for the lease.
func TestALeaderKeepsItsSession(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Lease, cfg.PublishTimeout, cfg.MaxSilence = 900*time.Millisecond, 800*time.Millisecond, time.Minute
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		<-time.After(700 * time.Millisecond)
		if call < 3 {
			return errors.New("no broker")
		}
		return nil
	})
	cfg.patience = time.Minute
	startRelay(t, cfg)
	commit(t, o, pool, newEvent("k"))
	l.AwaitDistinct(t, 1)
	require.Equal(t, int64(1), number(t, pool, `select epoch from outbox_cursor`))
}

func awaitStopped(t testing.TB, c *child) {
	t.Helper()
	testkit.Until(t, func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		return err == nil && pid == c.Process.Pid && status.Stopped()
	})
}

func TestRelayWithoutADatabaseKeepsTrying(t *testing.T) {
	t.Parallel()
	cfg := testRelayConfig(t, newDatabase(t), newLedger())
	tried := make(chan struct{}, 100)
	cfg.Connect = func(context.Context) (*pgx.Conn, error) {
		tried <- struct{}{}
		return nil, errors.New("no database")
	}
	r := startRelay(t, cfg)
	for range 3 {
		<-tried
	}
	r.stop()
}
