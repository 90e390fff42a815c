//go:build faults

package inbox_test

import (
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/test/testkit"
)

// A consumer has read that a dead letter holds the key and is about to commit an event as parked behind it, when a
// replay takes up that very dead letter. The replay has to wait, and then finds what was parked: nothing is left behind
// a dead letter that is gone.
func TestNothingParksBehindALetterThatIsGone(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, func(cfg *inbox.Config) { cfg.Consumer = "holder" })
	c.fall("bad")
	first, second := sick("a", 1, "bad"), v("a", 2)
	require.Equal(t, []inbox.Outcome{inbox.Dead}, c.deliver(t, first))
	c.heal()

	const point = "inbox.holder.committing"
	parking, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	t.Cleanup(func() { fault.Disarm(point) })
	fault.ArmNth(point, 1, func() {
		close(parking)
		<-goOn
	})
	var both errgroup.Group
	behind := whole(t, second, 1)
	both.Go(func() error {
		_, err := c.in.BatchMiddleware(c.next)(t.Context(), []*message.Message{behind})
		return err
	})
	<-parking
	ended := make(chan struct{})
	both.Go(func() error {
		defer close(ended)
		_, err := c.taker.Replay(t.Context(), operate.Filter{}, replay.Options{By: "ana", Reason: "fixed"})
		return err
	})
	testkit.Until(t, func() bool {
		select {
		case <-ended:
			return true // it should have waited; what comes of it is seen below
		default:
		}
		return c.Count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) > 0
	})
	release()
	require.NoError(t, both.Wait())

	c.requireEffects(t, first, second)
	require.Zero(t, c.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
}
