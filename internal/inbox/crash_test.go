//go:build faults

package inbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func traffic(n int) []event.Event {
	var events []event.Event
	for i := range n {
		events = append(events, v(fmt.Sprintf("key-%d", i%3), int64(i/3+1)))
	}
	return append(events, payload(events[0], `{"value":"other"}`), events[1])
}

func (b *bundle) job(events ...[]event.Event) job {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, err := b.Pool.Exec(ctx, `alter table ledger add column if not exists key text,
		add column if not exists version bigint`)
	if err != nil {
		panic(err)
	}
	return job{
		DSN: pgtest.DSN(b.Pool), Consumers: []string{"test"}, Partitions: events, Batch: 1, Attempts: 5,
		Timeout: testkit.WaitLimit,
	}
}

func (b *bundle) requireOnceInOrder(t *testing.T, effects int) {
	t.Helper()
	require.Equal(t, effects, b.Count(t, `select count(*) from ledger`))
	require.Equal(t, effects, b.Count(t, `select count(distinct event_id) from ledger`))
	require.Zero(t, b.Count(t, `select count(*) from (
		select version, lag(version) over (partition by key order by n) as before from ledger) l
		where before >= version`), "in order per key")
}

func (b *bundle) requireCleanEnd(t *testing.T) {
	t.Helper()
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`))
}

func TestAProcessThatDiesAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 5} {
		for _, point := range []string{"handling", "handled", "committed"} {
			t.Run(fmt.Sprintf("%s/%d", point, batch), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				job := b.job(traffic(12))
				job.Batch = batch
				armed := job
				armed.CrashAt, armed.CrashHit = "inbox.test."+point, 2
				require.EqualError(t, crashtest.Start(t, armed).Wait(t), crashtest.Killed)
				require.NoError(t, crashtest.Start(t, job).Wait(t))
				b.requireOnceInOrder(t, 12)
				require.Equal(t, []string{"id_conflict"}, b.List(t, `select code from dead_letter`))
				b.requireCleanEnd(t)
			})
		}
	}
}

func TestTenProcessesWithTheSameEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := b.job(traffic(12))
	job.Batch, job.AwaitStart, job.Attempts = 4, true, 10
	children := make([]*crashtest.Process, 10)
	for i := range children {
		children[i] = crashtest.Start(t, job)
	}
	for _, c := range children {
		c.Await(t, 1, "ready")
	}
	held, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `lock table inbox in share row exclusive mode`)
	require.NoError(t, err)
	for _, c := range children {
		c.CloseInput()
	}
	testkit.Until(t, func() bool {
		return b.Count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) >= 2
	}, "two processes are in the middle of the same events")
	require.NoError(t, held.Commit(t.Context()))
	applied, duplicates := 0, 0
	for _, c := range children {
		require.NoError(t, c.Wait(t))
		applied, duplicates = applied+c.Count("applied"), duplicates+c.Count("duplicate")
	}
	require.Equal(t, 12, applied)
	require.Greater(t, duplicates, len(children), "they did not take turns")
	b.requireOnceInOrder(t, 12)
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))
}

// The owner is stopped in a transaction, and continues while its successor handles the same events.
func TestAnOwnerThatWasStopped(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"handling", "handled", "committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := fresh(t)
			job := b.job(traffic(12))
			job.Batch, job.Timeout = 4, time.Second
			first := job
			first.CrashAt, first.CrashHit, first.Stop = "inbox.test."+point, 2, true
			stopped := crashtest.Start(t, first)
			stopped.Await(t, 1, crashtest.Frozen)
			second := crashtest.Start(t, job)
			if point == "committed" {
				require.NoError(t, second.Wait(t), "no transaction is open")
			} else {
				testkit.Until(t, func() bool {
					return b.Count(t, `select xact_rollback from pg_stat_database where datname = current_database()`) > 1
				}, "the successor gives up waiting, and tries again")
			}
			stopped.Thaw(t)
			require.NoError(t, stopped.Wait(t))
			require.NoError(t, second.Wait(t))
			b.requireOnceInOrder(t, 12)
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`), "of the conflict")
		})
	}
}

func (b *bundle) deaths(t *testing.T, job job) (deaths int) {
	t.Helper()
	for ; deaths <= 20; deaths++ {
		err := crashtest.Start(t, job).Wait(t)
		if err == nil {
			return deaths
		}
		require.EqualError(t, err, crashtest.Killed)
	}
	require.FailNow(t, "it dies again and again")
	return deaths
}

func TestAPoisonRecordIsFoundAmongManyPartitions(t *testing.T) {
	t.Parallel()
	for batch, deaths := range map[int]int{1: 1 + 2, 10: 2 + 2} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			partitions := make([][]event.Event, 3)
			for p := range partitions {
				for i := range 24 {
					partitions[p] = append(partitions[p], v(fmt.Sprintf("key-%d-%d", p, i%2), int64(i/2+1)))
				}
			}
			job := b.job(partitions...)
			job.Consumers, job.Batch, job.Attempts, job.Slow = []string{"test", "other"}, batch, 2, true
			job.KillFor = partitions[1][5].ID
			require.LessOrEqual(t, b.deaths(t, job), deaths)
			require.Equal(t, []string{"test " + job.KillFor}, b.List(t,
				`select consumer || ' ' || event_id from dead_letter where code = 'process_died'`))
			const parked = 9 // of the key's 12 events, after the third
			require.Equal(t, 1+parked, b.Count(t, `select count(*) from dead_letter`))
			b.requireOnceInOrder(t, 2*3*24-1-parked)
			require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
		})
	}
}
