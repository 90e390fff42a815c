package relay

import (
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/engine/outbox/window"
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
	r := &recorder{shared: shared{cfg: Config{BatchSize: 10, MaxUnrecorded: 100, RecordEvery: time.Minute}}}
	r.recordedAt = time.Now()
	require.False(t, r.isDue(outcome{}, 10), "nothing to record")
	require.False(t, r.isDue(outcome{events: 80}, 10))
	require.True(t, r.isDue(outcome{events: 81}, 10), "the next page could exceed the limit")
	require.True(t, r.isDue(outcome{events: 1, held: make([]window.Record, 1)}, 10), "something was set aside")
	require.True(t, r.isDue(outcome{events: 1, resumed: true}, 10), "taken in an earlier session")
	r.recordedAt = time.Now().Add(-time.Minute)
	require.True(t, r.isDue(outcome{events: 1}, 10))
	require.False(t, r.isDue(outcome{}, 10))
}
