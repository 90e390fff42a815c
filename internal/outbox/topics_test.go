package outbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRunRefusesAnotherPartitionCount(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	counts := map[string]int32{testTopic: 12, "other": 3}
	cfg.Topics = func(context.Context) (map[string]int32, error) { return counts, nil }
	r := startRelay(t, cfg)
	require.Eventually(t, func() bool { return number(t, pool, `select count(*) from outbox_topic`) == 2 },
		testTimeout, time.Millisecond)
	r.stop()

	counts = map[string]int32{testTopic: 13, "other": 3}
	again, err := NewRelay(cfg)
	require.NoError(t, err)
	var refused *CheckError
	require.ErrorAs(t, again.Run(t.Context()), &refused)
	require.True(t, refused.Has(codePartitionCount))
	require.ErrorContains(t, refused, "test.events.v1 has 13 partitions, its keys were spread over 12")
}

// A topic that is made while the relay leads is recorded then, and one that gets more partitions then ends it.
func TestTopicsAreWatchedWhileTheRelayLeads(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	var counts atomic.Pointer[map[string]int32]
	counts.Store(&map[string]int32{testTopic: 12})
	cfg.Topics = func(context.Context) (map[string]int32, error) { return *counts.Load(), nil }
	cfg.TopicsEvery = time.Millisecond
	r, err := NewRelay(cfg)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { result <- r.Run(t.Context()) }()
	recorded := func(n int64) func() bool {
		return func() bool { return number(t, pool, `select count(*) from outbox_topic`) == n }
	}
	require.Eventually(t, recorded(1), testTimeout, time.Millisecond)
	counts.Store(&map[string]int32{testTopic: 12, "late": 3})
	require.Eventually(t, recorded(2), testTimeout, time.Millisecond)
	counts.Store(&map[string]int32{testTopic: 12, "late": 4})
	select {
	case err := <-result:
		require.ErrorContains(t, err, "late has 4 partitions, its keys were spread over 3")
	case <-time.After(testTimeout):
		require.FailNow(t, "the relay goes on with other partitions")
	}
}
