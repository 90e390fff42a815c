package inbox_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// The connection is lost with the answer to the commit of a replayed dead letter. The dead letter is settled and
// counted, and the replay goes on with those parked behind it, though they were not selected.
func TestAReplayWhoseCommitIsNotAnswered(t *testing.T) {
	t.Parallel()
	replayWithoutAnAnswer(t, func(c *clinic, lost *atomic.Bool) {
		c.severing(t, func(answer []byte) bool { return isCommitted(answer) && lost.CompareAndSwap(false, true) })
	})
}

// replayWithoutAnAnswer replays what is dead, with another event parked behind it, over connections that lose one
// answer to a commit.
func replayWithoutAnAnswer(t *testing.T, lose func(c *clinic, lost *atomic.Bool)) {
	t.Helper()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	events := []cloudevent.Event{sick("a", 1, "bad"), v("a", 2), sick("b", 1, "bad")}
	c.deliver(t, events...)
	c.heal()
	var lost atomic.Bool
	lose(c, &lost)
	c.Config.MaxAttempts = 2
	c.open(t)
	c.seen = nil
	report := c.replay(t, operate.Filter{Code: inbox.CodeHandlerFailed})
	require.True(t, lost.Load())
	require.Equal(t, replay.Report{Matched: 3, Applied: 3}, report)
	c.requireEffects(t, events...)
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Applied}, c.seen)
}

// muted does not let the first answer to a commit through, and keeps the connection.
type muted struct {
	net.Conn
	lost *atomic.Bool
}

func (m *muted) Read(into []byte) (int, error) {
	n, err := m.Conn.Read(into)
	if n > 0 && isCommitted(into[:n]) && m.lost.CompareAndSwap(false, true) {
		return m.Conn.Read(into) // until the time is over
	}
	return n, err
}

// The same with an answer that does not come in time: that is the end of a handler that takes too long, too, but the
// dead letter is settled.
func TestAReplayWhoseCommitIsAnsweredTooLate(t *testing.T) {
	t.Parallel()
	replayWithoutAnAnswer(t, func(c *clinic, lost *atomic.Bool) {
		c.dialing(t, func(conn net.Conn) net.Conn { return &muted{conn, lost} })
		c.Config.HandlerTimeout = time.Second
	})
}

// The commit is answered too late, and then the database is away: the replay ends with an error, as with any outage,
// although its last attempt is behind it already.
func TestAReplayWhoseCommitIsAnsweredTooLateInAnOutage(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	c.deliver(t, sick("a", 1, "bad"))
	c.heal()
	var lost atomic.Bool
	var begun atomic.Int64 // transactions since
	c.dialing(t, func(conn net.Conn) net.Conn {
		return &severed{Conn: &muted{conn, &lost}, cut: func(answer []byte) bool {
			return lost.Load() && bytes.Contains(answer, []byte("BEGIN\x00")) && begun.Add(1) > 1
		}}
	})
	c.Config.MaxAttempts, c.Config.HandlerTimeout = 1, time.Second
	c.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := c.taker.Replay(ctx, operate.Filter{}, replay.Options{By: "ana"})
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it ends by itself")
	require.True(t, lost.Load())
	require.EqualValues(t, 2, begun.Load(), "it finds the dead letter settled, and cannot read how")
}
