//go:build faults

package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/testkit"
)

// replayPoints are all crash points of a replay, in the order in which a dead letter meets them.
var replayPoints = []string{"replay_claimed", "replay_handled", "replay_committing", "replay_committed"}

// ward is a clinic with dead letters of three keys: each has one that failed and two that are parked behind it.
func ward(t *testing.T) (*clinic, []cloudevent.Event) {
	t.Helper()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	var events []cloudevent.Event
	for _, key := range []string{"a", "b", "c"} {
		events = append(events, sick(key, 1, "bad"), v(key, 2), v(key, 3))
	}
	c.deliver(t, events...)
	require.Equal(t, len(events), c.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
	c.heal()
	return c, events
}

// requireHealed checks that each dead letter was taken up once, in the order of its key, and that each has one row in
// the audit trail.
func (c *clinic) requireHealed(t *testing.T, letters int) {
	t.Helper()
	c.requireOnceInOrder(t, letters)
	require.Equal(t, letters, c.Count(t, `select count(*) from dead_letter
		where state = 'replayed' and outcome = 'applied' and replays = 0`), "and a death is no failure")
	require.Equal(t, letters, c.Count(t, `select count(*) from operator_action where verb = 'replay'`))
	require.Equal(t, letters, c.Count(t, `select count(distinct subject) from operator_action where verb = 'replay'`))
}

// A replay is killed at each of its steps, with the first letter, in the middle of a key and at another one, and run
// again, twice.
func TestAReplayThatDiesAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range replayPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, events := ward(t)
			again := c.job(nil)
			again.Replay = true
			for _, hit := range []int{1, 2, 3} {
				armed := again
				armed.CrashAt, armed.CrashHit = "inbox.test."+point, hit
				require.EqualError(t, crashtest.Start(t, armed).Wait(t), crashtest.Killed, "at hit %d", hit)
			}
			for range 2 {
				require.NoError(t, crashtest.Start(t, again).Wait(t))
			}
			c.requireHealed(t, len(events))
			c.deliver(t, v("a", 4))
			require.Equal(t, []inbox.Outcome{inbox.Applied}, c.seen, "the key flows")
		})
	}
}

// A replay is frozen with a dead letter in its hands, and another one runs meanwhile. It waits for that dead letter,
// and neither takes up what the other has.
func TestTwoReplaysAtOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"replay_claimed", "replay_handled", "replay_committing"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, events := ward(t)
			second := c.job(nil)
			second.Replay = true
			first := second
			first.CrashAt, first.CrashHit, first.Stop = "inbox.test."+point, 2, true
			stopped := crashtest.Start(t, first)
			stopped.Await(t, 1, crashtest.Frozen)
			other := crashtest.Start(t, second)
			testkit.Until(t, func() bool {
				return c.Count(t, `select count(*) from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`) > 0
			}, "the other one waits for the dead letter")
			stopped.Thaw(t)
			require.NoError(t, stopped.Wait(t))
			require.NoError(t, other.Wait(t))
			c.requireHealed(t, len(events))
		})
	}
}

// Several replays of everything begin at the same moment.
func TestReplaysOfTheSameLetters(t *testing.T) {
	t.Parallel()
	c, events := ward(t)
	replay := c.job(nil)
	replay.Replay, replay.AwaitStart = true, true
	children := make([]*crashtest.Process, 4)
	for i := range children {
		children[i] = crashtest.Start(t, replay)
		children[i].Await(t, 1, "ready")
	}
	for _, child := range children {
		child.CloseInput()
	}
	for _, child := range children {
		require.NoError(t, child.Wait(t))
	}
	c.requireHealed(t, len(events))
}
