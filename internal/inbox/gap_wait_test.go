package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
)

// An outage before the gap is seen is no time in which the predecessor could have come.
func TestTheWaitForAPredecessorBeginsWithTheGap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	versioned(inbox.GapWait)(&b.Config)
	b.Config.HandlerTimeout, b.Config.GapWait = time.Second, 500*time.Millisecond
	outage, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = outage.Rollback(t.Context()) }()
	_, err = outage.Exec(t.Context(), `lock table inbox`)
	require.NoError(t, err)
	var over time.Time
	b.Host.OnPause = func(_ context.Context, failure error) {
		if failure != nil && over.IsZero() {
			over = time.Now() // the gap is seen later, by however much the machine likes
			_ = outage.Rollback(t.Context())
		}
	}
	var waited time.Duration
	b.Host.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) {
		require.Equal(t, inbox.Gap, o)
		waited = time.Since(over)
	}
	require.NoError(t, b.Deliver(t, record(t, v("key-1", 2), 1), effect))
	require.GreaterOrEqual(t, waited, b.Config.GapWait)
}
