package inbox_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/replay"
)

// The connection is lost with the answer to the commit of a replayed dead letter. The dead letter is settled and
// counted, and the replay goes on with those parked behind it, though they were not selected.
func TestAReplayWhoseCommitIsNotAnswered(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	events := []cloudevent.Event{sick("a", 1, "bad"), v("a", 2), sick("b", 1, "bad")}
	c.deliver(t, events...)
	c.heal()
	var lost atomic.Bool
	c.severing(t, func(answer []byte) bool { return isCommitted(answer) && lost.CompareAndSwap(false, true) })
	c.Config.MaxAttempts = 2
	c.open(t)
	c.seen = nil
	report := c.replay(t, operate.Filter{Code: inbox.CodeHandlerFailed})
	require.True(t, lost.Load())
	require.Equal(t, replay.Report{Matched: 3, Keys: 2, Applied: 3}, report)
	c.requireEffects(t, events...)
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Applied}, c.seen)
}
