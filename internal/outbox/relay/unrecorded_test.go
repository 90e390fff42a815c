package relay

import (
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/window"
)

// For pages of any size: when a page goes out, at most the limit is unrecorded, this page included.
func TestNoMoreIsUnrecordedThanTheLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 20, 25, 45, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			o, pool, l := newOutbox(t), newDatabase(t), newLedger()
			cfg := testRelayConfig(t, pool, l)
			cfg.BatchSize, cfg.MaxUnrecorded, cfg.RecordEvery = 10, limit, time.Hour
			most := 0
			l.Follow(func(_ int, _ string, msgs []*message.Message) error {
				wire, _ := l.Snapshot()
				most = max(most, unrecorded(t, pool, wire)+len(msgs))
				return nil
			})
			addMany(t, o, pool, 200, 7)
			startRelay(t, cfg)
			requireAll(t, pool, l.AwaitDistinct(t, 200))
			awaitCaughtUp(t, pool)
			require.LessOrEqual(t, most, max(limit, 2*cfg.BatchSize))
			if limit <= 200 {
				require.Greater(t, most, limit-2*cfg.BatchSize, "the limit is made use of")
			}
		})
	}
}

func TestWhatIsUnrecordedDoesNotWaitLong(t *testing.T) {
	t.Parallel()
	l := &leader{Relay: &Relay{cfg: Config{BatchSize: 10, MaxUnrecorded: 100, RecordEvery: time.Minute}}}
	l.recordedAt = time.Now()
	isDue := func(taken outcome) bool {
		l.taken = taken
		return l.recordIsDue(10)
	}
	require.False(t, isDue(outcome{}), "nothing to record")
	require.False(t, isDue(outcome{events: 80}))
	require.True(t, isDue(outcome{events: 81}), "the next page could exceed the limit")
	require.True(t, isDue(outcome{events: 1, held: make([]window.Record, 1)}), "something was set aside")
	require.True(t, isDue(outcome{events: 1, resumed: true}), "taken in an earlier session")
	l.recordedAt = time.Now().Add(-time.Minute)
	require.True(t, isDue(outcome{events: 1}))
	require.False(t, isDue(outcome{}))
}
