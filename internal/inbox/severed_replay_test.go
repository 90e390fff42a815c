package inbox_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// ward returns a clinic with dead letters of three keys: one failed and two parked each.
func ward(t *testing.T) (*clinic, []event.Event) {
	t.Helper()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	var events []event.Event
	for _, key := range []string{"a", "b", "c"} {
		events = append(events, sick(key, 1, "bad"), v(key, 2), v(key, 3))
	}
	c.deliver(t, events...)
	require.Len(t, c.waiting(t), len(events))
	c.heal()
	return c, events
}

func (c *clinic) requireHealed(t *testing.T, events []event.Event) {
	t.Helper()
	c.requireNothingWaits(t)
	require.ElementsMatch(t, ids(events...), c.List(t, `select event_id from ledger`))
	for key := range 3 {
		mine := ids(events[3*key : 3*key+3]...)
		require.Equal(t, mine, c.List(t, `select event_id from ledger where event_id = any($1) order by n`, mine))
	}
	require.Equal(t, len(events), c.Count(t, `select count(*) from dead_letter
		where state = 'replayed' and outcome = 'applied' and replays = 0`), "a lost connection is no failure")
	require.Equal(t, len(events), c.Count(t, `select count(*) from operator_action where verb = 'replay'`))
	require.Equal(t, len(events), c.Count(t, `select count(distinct subject) from operator_action where verb = 'replay'`))
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, v("a", 4)), "the key goes on")
}

func TestAReplayThatLosesItsConnection(t *testing.T) {
	t.Parallel()
	c, events := ward(t)
	intact := c.Pool
	loseAnswer := func(n int64) (answered int64) {
		c.empty(t)
		c.fall("bad")
		c.deliver(t, events...)
		c.heal()
		var answers atomic.Int64
		pool := c.severing(t, func([]byte) bool { return answers.Add(1) == n })
		c.open(t)
		_ = c.replayer.Replay(t.Context(), deadletter.Filter{}, byAna)
		pool.Close()
		c.Config.Pool = intact
		c.open(t)
		c.replay(t, deadletter.Filter{})
		c.requireHealed(t, events)
		return answers.Load()
	}
	all := loseAnswer(math.MaxInt64)
	require.Greater(t, all, int64(8*len(events)), "each statement has an answer")
	losses := rand.Perm(int(all))
	if *statements > 0 {
		losses = losses[:min(2**statements, len(losses))]
	}
	for _, n := range losses {
		t.Logf("answer %d is lost", n+1)
		loseAnswer(int64(n + 1))
	}
}

func TestAReplayThatIsCancelled(t *testing.T) {
	t.Parallel()
	c, events := ward(t)
	ctx, cancel := context.WithCancel(t.Context())
	var outcomes []string
	o := inbox.Options{Change: audit.Change{By: "ana"}, OnResult: func(r inbox.Result) {
		outcomes = append(outcomes, r.Outcome)
		cancel()
	}}
	require.ErrorIs(t, c.replayer.Replay(ctx, deadletter.Filter{}, o), context.Canceled)
	require.Equal(t, []string{"applied"}, outcomes)

	ctx, cancel = context.WithCancel(t.Context())
	handler := c.handler
	c.replayer = inbox.NewReplayer(c.in, func(m *message.Message) ([]*message.Message, error) {
		cancel()
		return handler(m)
	})
	o.OnResult = func(r inbox.Result) { require.Empty(t, r) }
	require.ErrorIs(t, c.replayer.Replay(ctx, deadletter.Filter{}, o), context.Canceled)
	c.open(t)
	c.replay(t, deadletter.Filter{})
	c.requireHealed(t, events)
}
