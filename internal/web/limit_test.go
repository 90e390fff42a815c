package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client with a whole network of addresses uses each of them once.
func TestTheLimitersMemoryIsBounded(t *testing.T) {
	t.Parallel()
	limit, now := &limiter{limit: 1, present: map[string]int{}}, time.Unix(1_000_000, 0)
	for n := range 3 * maxClients {
		require.True(t, limit.allow(fmt.Sprintf("2001:db8:%x:%x::/64", n>>16, n&0xffff), now))
	}
	require.Len(t, limit.present, maxClients)
	require.True(t, limit.allow("203.0.113.7", now), "others are served")
	require.False(t, limit.allow("203.0.113.7", now))
	require.False(t, limit.allow("203.0.113.7", now.Add(59*time.Second)))
	require.True(t, limit.allow("203.0.113.7", now.Add(2*time.Minute)))
	require.Len(t, limit.present, 1)
}
