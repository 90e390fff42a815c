//go:build faults

package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/testkit"
)

func (c *clinic) replayJob() job {
	j := c.job()
	j.Replay = true
	return j
}

func (c *clinic) requireReplayedByChildren(t *testing.T, events []event.Event) {
	t.Helper()
	c.Exec(t, `update ledger set event_id = substr(event_id, 6) where event_id like 'test %'`)
	c.requireHealed(t, events)
}

func TestAReplayThatDiesAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"handling", "handled", "committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, events := ward(t)
			again := c.replayJob()
			for _, hit := range []int{1, 3} {
				armed := again
				armed.CrashAt, armed.CrashHit = "inbox.test."+point, hit
				require.EqualError(t, crashtest.Start(t, armed).Wait(t), crashtest.Killed, "at hit %d", hit)
			}
			require.NoError(t, crashtest.Start(t, again).Wait(t))
			c.requireReplayedByChildren(t, events)
		})
	}
}

func TestTwoReplaysAtOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"handling", "handled"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, events := ward(t)
			second := c.replayJob()
			first := second
			first.CrashAt, first.CrashHit, first.Stop = "inbox.test."+point, 2, true
			stopped := crashtest.Start(t, first)
			stopped.Await(t, 1, crashtest.Frozen)
			other := crashtest.Start(t, second)
			testkit.Until(t, func() bool {
				return c.Count(t, `select count(*) from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`) > 0
			}, "the other one waits for the key")
			stopped.Thaw(t)
			require.NoError(t, stopped.Wait(t))
			require.NoError(t, other.Wait(t))
			c.requireReplayedByChildren(t, events)
		})
	}
}
