package consumer

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

// A handler may ignore that its partition is gone, and end when it likes. By then another member
// may own the partition: an offset committed now would make it skip records that it has not
// handled.
func TestWhatEndsAfterThePartitionWasLeftIsNotMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := quick(1, 0)
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			<-release
			return len(batch), nil
		}
		session := newFakeSession(1)
		p := newPartition(m, session, session)
		left := make(chan bool)
		go func() { left <- p.own(p.work) }()
		synctest.Wait() // until the handler runs
		m.cancel()
		require.False(t, <-left, "after twice the drain timeout it is not idle")
		require.ErrorIs(t, context.Cause(p.ctx), errPartitionLost)
		close(release)
		synctest.Wait()
		require.Empty(t, session.marked)
	})
}
