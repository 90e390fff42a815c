//go:build faults

package inbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// points are all crash points of the inbox, in the order in which an event meets them.
var points = []string{
	"received", "beginning", "recorded", "handling", "handled", "committing", "committed", "giving_up", "burying",
	"buried", "acknowledging",
}

// traffic is what a partition holds: keys in turn, an id that comes back with another payload, a redelivery.
func traffic(n int) []cloudevent.Event {
	var events []cloudevent.Event
	for i := range n {
		events = append(events, v(fmt.Sprintf("key-%d", i%3), int64(i/3+1)))
	}
	events = append(events, payload(events[0], `{"value":"other"}`), events[1])
	return events
}

// The process is killed at every crash point, with one and with many events per transaction, and started again: each
// event has one effect, in the order of its key, and the one that is to be given up is given up once.
func TestAProcessThatDiesAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 5} {
		for _, point := range points {
			t.Run(fmt.Sprintf("%s/%d", point, batch), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				job := b.job(traffic(12))
				job.Batch = batch
				armed := job
				armed.CrashAt, armed.CrashHit = "inbox.test."+point, 2
				if point == "giving_up" || point == "burying" || point == "buried" {
					armed.CrashHit = 1
				}
				require.Equal(t, crashtest.Killed, crashtest.Start(t, armed).Wait(t).Error())
				require.NoError(t, crashtest.Start(t, job).Wait(t))
				b.requireOnceInOrder(t, 12)
				require.Equal(t, []string{"id_conflict"}, b.List(t, `select code from dead_letter`))
				require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
				require.Zero(t, b.Count(t, `select count(*) from inbox_owner`), "the last one stopped cleanly")
			})
		}
	}
}

// requireOnceInOrder checks the ledger, which has no constraint that could have helped.
func (b *bundle) requireOnceInOrder(t *testing.T, effects int) {
	t.Helper()
	require.Equal(t, effects, b.Count(t, `select count(*) from ledger`))
	require.Equal(t, effects, b.Count(t, `select count(distinct event_id) from ledger`))
	require.Zero(t, b.Count(t, `select count(*) from (
		select version, lag(version) over (partition by key order by n) as before from ledger) l
		where before >= version`), "in order per key")
}

// Ten processes get the same events at the same moment.
func TestTenProcessesWithTheSameEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := b.job(traffic(12))
	job.Batch, job.AwaitStart, job.Attempts = 4, true, 1 // so that one death counted wrongly is seen
	b.Exec(t, `insert into inbox_owner (consumer, topic, partition, owner, in_flight)
		values ('test', 'topic-1', 0, 'a dead process', 6)`)
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
	}, "one holds the events, one that takes it for dead half of them")
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

// An owner is stopped in the middle of a transaction, for longer than its successor's patience, and goes on when that
// one is at work on the same events.
func TestAnOwnerThatWasStopped(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"recorded", "handled", "committing"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			job := b.job(traffic(12))
			job.Batch, job.Timeout = 4, time.Second
			first := job
			first.CrashAt, first.CrashHit, first.Stop = "inbox.test."+point, 2, true
			stopped := crashtest.Start(t, first)
			stopped.Await(t, 1, crashtest.Frozen)
			second := crashtest.Start(t, job)
			testkit.Until(t, func() bool {
				return b.Count(t, `select xact_rollback from pg_stat_database where datname = current_database()`) > 1
			}, "the successor gives up waiting, and tries again")
			stopped.Thaw(t)
			require.NoError(t, stopped.Wait(t))
			require.NoError(t, second.Wait(t))
			b.requireOnceInOrder(t, 12)
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`), "nothing healthy among them")
		})
	}
}

// A record that kills the process reaches the dead letters after as many attempts as any other failure, those around
// it are applied, and all this costs nothing while no process dies.
func TestARecordThatKillsTheProcess(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 5} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			job := b.job(traffic(12))
			job.Batch, job.Attempts = batch, 3
			clean := b.job(traffic(3))
			clean.Batch = batch
			require.NoError(t, crashtest.Start(t, clean).Wait(t))
			require.Zero(t, b.Count(t, `select pg_relation_size('inbox_attempt')`), "never written")
			b.Exec(t, `truncate ledger, dead_letter, inbox, inbox_watermark`)

			job.KillFor = job.Events[7].ID
			deaths := 0
			for ; deaths < 20; deaths++ {
				if crashtest.Start(t, job).Wait(t) == nil {
					break
				}
			}
			require.Equal(t, 1+3, deaths, "once unsuspected, then attempt by attempt")
			b.requireOnceInOrder(t, 10)
			require.Equal(t, []string{"process_died 3"}, b.List(t,
				`select code || ' ' || attempts from dead_letter where event_id = $1`, job.KillFor))
			require.Equal(t, []string{job.Events[10].ID}, b.List(t,
				`select event_id from dead_letter where code = 'parked_behind'`), "the next one of its key waits for it")
			require.Equal(t, 3, b.Count(t, `select count(*) from dead_letter`))
			require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
			require.NoError(t, crashtest.Start(t, job).Wait(t), "and it stays there")
			require.Equal(t, 3, b.Count(t, `select count(*) from dead_letter`))
		})
	}
}

func (b *bundle) job(events []cloudevent.Event) job {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, err := b.Pool.Exec(ctx, `alter table ledger add column if not exists key text,
		add column if not exists version bigint`)
	if err != nil {
		panic(err)
	}
	return job{DSN: pgtest.DSN(b.Pool), Events: events, Batch: 1, Attempts: 5, Timeout: crashtest.Patience}
}
