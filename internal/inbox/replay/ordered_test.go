package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

// beginnings are the times since the start at which work that takes so long each time may begin.
func beginnings(t *testing.T, rate float64, work ...time.Duration) (at []time.Duration) {
	t.Helper()
	started, p := time.Now(), NewPace(rate)
	for _, w := range work {
		require.NoError(t, p.Await(t.Context()))
		at = append(at, time.Since(started))
		require.NoError(t, (inbox.Standalone{}).Pause(t.Context(), nil, w))
	}
	return at
}

func TestThePaceIsKeptExactly(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		rate float64
		work []time.Duration
		want []time.Duration
	}{
		"work that takes no time": {
			4, make([]time.Duration, 5), []time.Duration{0, 250 * ms, 500 * ms, 750 * ms, 1000 * ms},
		},
		"work within its share": {4, []time.Duration{100 * ms, 249 * ms, 0}, []time.Duration{0, 250 * ms, 500 * ms}},
		"slow work, then no burst": {
			4, []time.Duration{0, 900 * ms, 0, 0}, []time.Duration{0, 250 * ms, 1150 * ms, 1400 * ms},
		},
		"less than one a second": {0.5, make([]time.Duration, 3), []time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"next to nothing":        {1e-300, make([]time.Duration, 2), []time.Duration{0, slowest}},
		"no bound":               {0, []time.Duration{ms, 0, 0}, []time.Duration{0, ms, ms}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { require.Equal(t, c.want, beginnings(t, c.rate, c.work...)) })
		})
	}
}

func TestThePaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		p, started := NewPace(0.001), time.Now()
		require.NoError(t, p.Await(ctx))
		require.ErrorIs(t, p.Await(ctx), enough)
		require.Equal(t, time.Minute, time.Since(started))
	})
}
