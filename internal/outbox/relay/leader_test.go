package relay

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox/window"
	"example.com/twinbox/test/outboxtest"
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
	relays[leader].stop() // and gives the lease back: no relay waits for its end
	commit(t, o, pool, event("k0"))
	l.AwaitDistinct(t, 201)
}

// Who led once and stops now must not end the lease of the one who leads.
func TestAStaleLeaderReleasesNothing(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	stale, leader := takeOver(t, pool), takeOver(t, pool)
	require.NoError(t, stale.release(t.Context()))
	seen, err := readLeadership(t.Context(), leader.conn)
	require.NoError(t, err)
	require.Positive(t, seen.remaining)
	require.NoError(t, leader.release(t.Context()))
	seen, err = readLeadership(t.Context(), leader.conn)
	require.NoError(t, err)
	require.Negative(t, seen.remaining)
}

// A call of Publish must have returned before its lease ends: what is left is looked at before each.
func TestAFlightIsNotLaunchedOnAnExpiringLease(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Lease = time.Hour
	l := newLeader(t, pool, cfg)
	l.term.Lease = cfg.Lease
	soon := time.Now().Add(cfg.PublishTimeout)
	l.term.Until = soon
	require.NoError(t, l.secureLease(t.Context(), l.sendingTime))
	require.True(t, l.term.Until.After(soon), "the lease is extended first")
	takeOver(t, pool)
	soonAfter, before := time.Now().Add(time.Hour), time.Now().Add(-proveAfter)
	l.answered.Store(&soonAfter)
	require.NoError(t, l.secureLease(t.Context(), l.sendingTime),
		"there is time, and a sign of life: the database is not asked")
	l.answered.Store(&before)
	require.ErrorIs(t, l.secureLease(t.Context(), l.sendingTime), window.ErrDeposed, "the session may have ended")
	l.answered.Store(&soonAfter)
	l.term.Until = soon
	require.ErrorIs(t, l.secureLease(t.Context(), l.sendingTime), window.ErrDeposed)
}

// While the broker is down there are only attempts and pauses between them. The lease is kept up all the same, long
// before it would be too short for another attempt.
func TestTheLeaseIsKeptBetweenAttempts(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Lease = time.Hour
	l := newLeader(t, pool, cfg)
	l.term.Lease = cfg.Lease
	enough := time.Now().Add(l.sendingTime + time.Minute)
	l.term.Until = enough
	require.NoError(t, l.backOff(t.Context(), time.Millisecond))
	require.Greater(t, l.term.Until, enough)
}

// The relay that led last need not wait for its own lease when its session is ended.
func TestALeaderTakesItsOwnLeaseBack(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Lease, cfg.PollMax = time.Hour, time.Second
	r := startRelay(t, cfg)
	testkit.Until(t, r.leads)
	_, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'outbox relay' and datname = current_database()`)
	require.NoError(t, err)
	commit(t, o, pool, event("k"))
	l.AwaitDistinct(t, 1)
	require.Equal(t, int64(2), number(t, pool, `select epoch from outbox_cursor`))
}

// A leader is stopped in the middle of a call, for longer than its lease. Another takes over and publishes the same
// rows. The first wakes up, believes that it leads, and changes nothing but the number of duplicates.
func TestStoppedLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	require.True(t, fault.Enabled, "build with -tags faults")
	for _, point := range []string{
		"relay.publish.before", "relay.publish.after", "relay.advance.before", "relay.finish.before", "relay.store.before",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			o, pool := newOutbox(t), newDatabase(t)
			addMany(t, o, pool, crashEvents, 5)
			path := wirePath(t)
			c := childConfig{
				DSN: pool.Config().ConnString(), Wire: path, Point: point, Nth: 1, Stop: true, Lease: 1200 * time.Millisecond,
			}
			sleeper := startChild(t, c)
			awaitStopped(t, sleeper)
			epoch := number(t, pool, `select epoch from outbox_cursor`)
			noteTakeovers(t, pool)
			c.Point, c.Lease = "", 0
			startChild(t, c)
			testkit.Until(t, func() bool { return number(t, pool, `select epoch from outbox_cursor`) > epoch })
			require.Len(t, takeovers(t, pool), 1)
			awaitCaughtUp(t, pool)
			addMany(t, o, pool, 5, 5)
			awaitCaughtUp(t, pool)

			generation := number(t, pool, `select generation from outbox_cursor`)
			require.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
			testkit.Until(t, func() bool { // it notices, and follows
				return number(t, pool, `select count(*) from pg_stat_activity where datname = current_database()
					and query like '%lease_until - clock_timestamp()%' and pid <> pg_backend_pid()`) == 1
			})
			require.Equal(t, generation, number(t, pool, `select generation from outbox_cursor`))
			require.Equal(t, epoch+1, number(t, pool, `select epoch from outbox_cursor`))
			wire, err := readWire(path)
			require.NoError(t, err)
			requireAll(t, pool, wire)
			require.LessOrEqual(t, len(wire)-distinct(wire), 2*crashPage)
		})
	}
}

// A follower takes over when the lease has run out, not before, and by itself.
func TestAFollowerTakesOverWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	_, err := pool.Exec(t.Context(), `
		update outbox_cursor set epoch = 7, leader = 'dead', lease_until = clock_timestamp() + interval '1 hour'`)
	require.NoError(t, err)
	r := startRelay(t, testRelayConfig(t, pool, l))
	testkit.Until(t, r.follows)
	noteTakeovers(t, pool)
	commit(t, o, pool, event("k"))
	_, err = pool.Exec(t.Context(), `update outbox_cursor set lease_until = clock_timestamp() + interval '200 ms'`)
	require.NoError(t, err)
	l.AwaitDistinct(t, 1)
	waited := takeovers(t, pool)
	require.Len(t, waited, 1)
	t.Logf("took over %s after the lease", waited[0])
	require.Equal(t, int64(8), number(t, pool, `select epoch from outbox_cursor`))
}

// noteTakeovers writes down from now on how long after the end of the last lease, by the database's clock, each
// leader's term began.
func noteTakeovers(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		create table public.takeover (waited interval not null);
		create function public.note_takeover() returns trigger language plpgsql as $$ begin
			insert into public.takeover values (clock_timestamp() - old.lease_until);
			return new;
		end $$;
		create trigger note_takeover before update on public.outbox_cursor
			for each row when (new.leader <> old.leader) execute function public.note_takeover()`)
	require.NoError(t, err)
}

// takeovers are the noted ones. None came before its time, and none waited much longer than it had to.
func takeovers(t testing.TB, pool *pgxpool.Pool) []time.Duration {
	t.Helper()
	waited := outboxtest.Column[time.Duration](t, pool, `select waited from public.takeover`)
	for _, w := range waited {
		require.GreaterOrEqual(t, w, time.Duration(0), "the lease had not run out")
		require.Less(t, w, testTimeout)
	}
	return waited
}

func awaitStopped(t testing.TB, c *child) {
	t.Helper()
	testkit.Until(t, func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		return err == nil && pid == c.Process.Pid && status.Stopped()
	})
}

// The leader's session is ended from outside again and again: nothing is lost, and what was taken in between is not
// even sent again, since the process remembers it.
func TestRelayOutlivesItsSessions(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize = 5
	killed := 0
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		if call%10 == 5 && killed < 4 {
			killed++
			_, err := pool.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity
				where application_name = 'outbox relay' and datname = current_database()`)
			return err
		}
		return nil
	})
	addMany(t, o, pool, 300, 7)
	startRelay(t, cfg)
	wire := l.AwaitDistinct(t, 300)
	requireAll(t, pool, wire)
	require.Equal(t, 4, killed)
	require.Len(t, wire, 300)
}

// A connection that is cut without a word (here: closed by something in between) is no different.
func TestRelayOutlivesACutConnection(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize = 5
	var dialled atomic.Int32
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(pool.Config().ConnString())
		if err != nil {
			return nil, err
		}
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			dialled.Add(1)
			return &cutter{Conn: conn, left: 40}, nil
		}
		return pgx.ConnectConfig(ctx, config)
	}
	addMany(t, o, pool, 200, 7)
	r := startRelay(t, cfg)
	wire := l.AwaitDistinct(t, 200)
	r.stop()
	requireAll(t, pool, wire)
	require.Greater(t, dialled.Load(), int32(2), "connections were cut")
}

// cutter is a connection that breaks after so many writes: some of them in a commit whose answer never comes.
type cutter struct {
	net.Conn
	left int
}

var errCut = errors.New("cut")

func (c *cutter) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		n, _ := c.Conn.Write(b) // it arrives, the answer does not
		_ = c.Close()
		return n, errCut
	}
	return c.Conn.Write(b)
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
