package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestScheduleIsFixedBySeed(t *testing.T) {
	t.Parallel()
	first := schedule(1000, time.Second, 1)
	require.Equal(t, first, schedule(1000, time.Second, 1))
	require.NotEqual(t, first, schedule(1000, time.Second, 2))
}

func TestScheduleKeepsItsRateAndItsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(10, 5000).Draw(t, "rate")
		length := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(t, "length"))
		due := schedule(rate, length, rapid.Uint64().Draw(t, "seed"))
		require.True(t, slices.IsSorted(due))
		if len(due) > 0 {
			require.Less(t, due[len(due)-1], length)
		}
		expected := rate * length.Seconds()
		// A Poisson count strays from its mean by its square root; ten of them do not happen.
		spread := 10 * max(1, math.Sqrt(expected))
		require.InDelta(t, expected, float64(len(due)), spread)
	})
}

func TestScheduleHasGapsAndBursts(t *testing.T) {
	t.Parallel()
	due := schedule(100, 10*time.Second, 3)
	short, long := 0, 0
	for i := 1; i < len(due); i++ {
		switch gap := due[i] - due[i-1]; {
		case gap < time.Millisecond:
			short++
		case gap > 30*time.Millisecond:
			long++
		}
	}
	require.Positive(t, short, "arrivals do not wait for each other")
	require.Positive(t, long)
}
