package relay

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/operate"
	"example.com/twinbox/test/testkit"
)

// topicsOf is a broker's answer.
type topicsOf struct {
	mu     sync.Mutex
	counts map[string]int32
	err    error
}

func (o *topicsOf) are(counts map[string]int32, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts, o.err = counts, err
}

func (o *topicsOf) ask(context.Context) (map[string]int32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts), o.err
}

func (o *topicsOf) watch(cfg *Config) {
	cfg.Topics, cfg.TopicsEvery, cfg.ConfirmEvery = o.ask, time.Millisecond, time.Millisecond
}

func requireEventually(t *testing.T, condition func() bool) {
	t.Helper()
	testkit.Until(t, condition)
}

// A topic that gets more partitions while the relay leads, or while no relay runs, stops publishing and nothing else:
// events are taken, and go out in order when the new count is confirmed.
func TestNothingIsPublishedUntilMorePartitionsAreConfirmed(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	published := newLedger()
	cfg := testRelayConfig(t, pool, published)
	var broker topicsOf
	broker.are(map[string]int32{testTopic: 6}, nil)
	broker.watch(&cfg)
	r := startRelay(t, cfg)
	recorded := func(topic string, n int32) func() bool {
		return func() bool {
			counts, err := operate.TopicPartitions(t.Context(), pool)
			return err == nil && counts[topic] == n
		}
	}
	requireEventually(t, recorded(testTopic, 6))
	broker.are(map[string]int32{testTopic: 6, "late": 3}, nil)
	requireEventually(t, recorded("late", 3))

	broker.are(map[string]int32{testTopic: 12, "late": 3}, nil)
	held := func() bool { return r.unwell(t, "publishes nothing") }
	requireEventually(t, held)
	require.ErrorContains(t, r.Healthy(t.Context()), "publishes nothing: outbox refuses to work: partition_count: "+
		testTopic+" has 12 partitions, its keys are spread over 6")
	require.True(t, recorded(testTopic, 6)())
	box := newOutbox(t)
	commit(t, box, pool, event("k"), event("k"), event("l"))
	r.stop()

	commit(t, box, pool, event("k"))
	broker.are(map[string]int32{testTopic: 12, "late": 3}, nil)
	r = startRelay(t, cfg)
	requireEventually(t, held)
	broker.are(nil, errors.New("broker is away"))
	require.Never(t, func() bool { return !held() || published.CallCount() > 0 },
		50*time.Millisecond, time.Millisecond, "what the broker said last still holds")

	_, err := operate.ConfirmPartitions(t.Context(), pool, "no such topic", 12)
	require.ErrorIs(t, err, operate.ErrPartitionsUnchanged)
	before, err := operate.ConfirmPartitions(t.Context(), pool, testTopic, 12)
	require.NoError(t, err)
	require.EqualValues(t, 6, before)
	_, err = operate.ConfirmPartitions(t.Context(), pool, testTopic, 12)
	require.ErrorIs(t, err, operate.ErrPartitionsUnchanged)
	requireAll(t, pool, published.AwaitDistinct(t, 4))
	require.True(t, recorded(testTopic, 12)())
	requireEventually(t, func() bool { return r.Healthy(t.Context()) == nil })
}
