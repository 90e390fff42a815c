package outbox

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
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
)

func TestOneRelayLeads(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	relays := []running{
		startRelay(t, testRelayConfig(t, pool, l)), startRelay(t, testRelayConfig(t, pool, l)),
		startRelay(t, testRelayConfig(t, pool, l)),
	}
	addMany(t, o, pool, 200, 5)
	wire := l.awaitDistinct(t, 200)
	requireAll(t, pool, wire)
	require.Len(t, wire, 200)

	leader, followers := -1, 0
	for i, r := range relays {
		require.NoError(t, r.Healthy(t.Context()))
		if r.leads() {
			leader = i
		} else {
			followers++
		}
	}
	require.Equal(t, 2, followers)
	began := time.Now()
	relays[leader].stop()
	commit(t, o, pool, event("k0"))
	l.awaitDistinct(t, 201)
	require.Less(t, time.Since(began), relays[leader].cfg.Lease, "a clean stop gives the lease back")
}

// Whoever led last need not wait for its own lease when its session is ended.
func TestALeaderTakesItsOwnLeaseBack(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Lease, cfg.PollMax = time.Hour, time.Second
	r := startRelay(t, cfg)
	require.Eventually(t, r.leads, testTimeout, tick)
	_, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'outbox relay' and datname = current_database()`)
	require.NoError(t, err)
	commit(t, o, pool, event("k"))
	l.awaitDistinct(t, 1)
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
			c := childConfig{DSN: pool.Config().ConnString(), Wire: path, Point: point, Nth: 1, Stop: true}
			sleeper := startChild(t, c)
			awaitStopped(t, sleeper)
			epoch := number(t, pool, `select epoch from outbox_cursor`)
			stopped := time.Now()

			c.Point = ""
			startChild(t, c)
			require.Eventually(t, func() bool { return number(t, pool, `select epoch from outbox_cursor`) > epoch },
				testTimeout, time.Millisecond)
			require.Less(t, time.Since(stopped), 600*time.Millisecond+time.Second+time.Second,
				"takeover within lease and a second, and one for the process to start")
			awaitCaughtUp(t, pool)
			addMany(t, o, pool, 5, 5)
			awaitCaughtUp(t, pool)

			generation := number(t, pool, `select generation from outbox_cursor`)
			require.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
			require.Eventually(t, func() bool { // it notices, and follows
				return number(t, pool, `select count(*) from pg_stat_activity where datname = current_database()
					and query like '%lease_until - clock_timestamp()%' and pid <> pg_backend_pid()`) == 1
			}, testTimeout, 5*time.Millisecond)
			require.Equal(t, generation, number(t, pool, `select generation from outbox_cursor`))
			require.Equal(t, epoch+1, number(t, pool, `select epoch from outbox_cursor`))
			wire, err := readWire(path)
			require.NoError(t, err)
			requireAll(t, pool, wire)
			require.LessOrEqual(t, len(wire)-distinct(wire), 2*crashPage)
		})
	}
}

func awaitStopped(t testing.TB, c *child) {
	t.Helper()
	require.Eventually(t, func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		return err == nil && pid == c.Process.Pid && status.Stopped()
	}, testTimeout, time.Millisecond)
}

// The leader's session is ended from outside again and again: nothing is lost, and what was taken in between is not
// even sent again, since the process remembers it.
func TestRelayOutlivesItsSessions(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize, cfg.Lease, cfg.PublishTimeout = 5, 300*time.Millisecond, 200*time.Millisecond
	killed := 0
	l.follow(func(call int, _ string, _ []*message.Message) error {
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
	wire := l.awaitDistinct(t, 300)
	requireAll(t, pool, wire)
	require.Equal(t, 4, killed)
	require.Len(t, wire, 300)
}

// A connection that is cut without a word (here: closed by something in between) is no different.
func TestRelayOutlivesACutConnection(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize, cfg.Lease, cfg.PublishTimeout = 5, 300*time.Millisecond, 200*time.Millisecond
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
			return &cutter{Conn: conn, left: 37}, nil
		}
		return pgx.ConnectConfig(ctx, config)
	}
	addMany(t, o, pool, 200, 7)
	r := startRelay(t, cfg)
	wire := l.awaitDistinct(t, 200)
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

func TestRunRefusesBadConfigurationAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewRelay(RelayConfig{PublishTimeout: time.Minute, BatchSize: -1, Retention: time.Second})
	var refused *CheckError
	require.ErrorAs(t, err, &refused)
	for _, code := range []string{"database", "publisher", "publish_timeout", "batch_size", "retention", "max_silence"} {
		require.True(t, refused.Has(code), code)
	}
	require.ErrorContains(t, err, "outbox cannot start: database: ")
}

func TestRunRefusesServersOnWhichEventsWouldBeLost(t *testing.T) {
	t.Parallel()
	for code, sql := range map[string]string{
		"synchronous_commit": `do $$ begin
			execute format('alter database %I set synchronous_commit = off', current_database()); end $$`,
		"sequence_cache":     `alter sequence outbox_position_seq cache 20`,
		"sequence_increment": `alter sequence outbox_position_seq increment 2`,
		"sequence_range":     `alter sequence outbox_position_seq cycle`,
		"xid_default":        `alter table outbox alter xid drop default`,
		"unlogged":           `alter table outbox_held set unlogged`,
		"schema":             `delete from outbox_cursor`,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			pool := newDatabase(t)
			_, err := pool.Exec(t.Context(), sql)
			require.NoError(t, err)
			r, err := NewRelay(testRelayConfig(t, pool, newLedger()))
			require.NoError(t, err)
			var refused *CheckError
			require.ErrorAs(t, r.Run(t.Context()), &refused)
			require.True(t, refused.Has(code), refused.Error())
			require.Len(t, refused.Problems, 1)
		})
	}
}

func TestRunRefusesAnotherPartitionCount(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	counts := map[string]int32{testTopic: 12, "other": 3}
	cfg.Topics = func(context.Context) (map[string]int32, error) { return counts, nil }
	r := startRelay(t, cfg)
	require.Eventually(t, func() bool { return number(t, pool, `select count(*) from outbox_topic`) == 2 },
		testTimeout, time.Millisecond)
	r.stop()

	counts = map[string]int32{testTopic: 13, "other": 3}
	again, err := NewRelay(cfg)
	require.NoError(t, err)
	var refused *CheckError
	require.ErrorAs(t, again.Run(t.Context()), &refused)
	require.True(t, refused.Has(codePartitionCount))
	require.ErrorContains(t, refused, "test.events.v1 has 13 partitions, its keys were spread over 12")
}

// A topic that is made while the relay leads is recorded then, and one that gets more partitions then ends it.
func TestTopicsAreWatchedWhileTheRelayLeads(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	var counts atomic.Pointer[map[string]int32]
	counts.Store(&map[string]int32{testTopic: 12})
	cfg.Topics = func(context.Context) (map[string]int32, error) { return *counts.Load(), nil }
	cfg.TopicsEvery = time.Millisecond
	r, err := NewRelay(cfg)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { result <- r.Run(t.Context()) }()
	recorded := func(n int64) func() bool {
		return func() bool { return number(t, pool, `select count(*) from outbox_topic`) == n }
	}
	require.Eventually(t, recorded(1), testTimeout, time.Millisecond)
	counts.Store(&map[string]int32{testTopic: 12, "late": 3})
	require.Eventually(t, recorded(2), testTimeout, time.Millisecond)
	counts.Store(&map[string]int32{testTopic: 12, "late": 4})
	select {
	case err := <-result:
		require.ErrorContains(t, err, "late has 4 partitions, its keys were spread over 3")
	case <-time.After(testTimeout):
		require.FailNow(t, "the relay goes on with other partitions")
	}
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
