package main

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/test/testkit"
)

func TestScheduleKeepsItsRateAndItsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(10, 5000).Draw(t, "rate")
		length := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(t, "length"))
		due := schedule(rate, length)
		require.Equal(t, due, schedule(rate, length), "the same in every run")
		require.True(t, slices.IsSorted(due))
		if len(due) > 0 {
			require.Less(t, due[len(due)-1], length)
		}
		expected := rate * length.Seconds()
		// A Poisson count strays from its mean by its square root; ten of them do not happen.
		require.InDelta(t, expected, float64(len(due)), 10*max(1, math.Sqrt(expected)))
	})
}

func TestScheduleHasGapsAndBursts(t *testing.T) {
	t.Parallel()
	due := schedule(100, 10*time.Second)
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

func TestWaitsCountFromTheCommit(t *testing.T) {
	t.Parallel()
	a, now := newArrivals[string](0), time.Now()
	p := &passage{}
	for _, event := range []struct {
		name string
		wait time.Duration
	}{{"late", 3e6}, {"in time", 1e6}, {"faster than the commit's answer", -1e6}} {
		p.events, p.committed = append(p.events, event.name), append(p.committed, now)
		a.at[event.name] = now.Add(event.wait)
	}
	require.Equal(t, []time.Duration{0, 1e6, 3e6}, p.waits(a))
}

func TestAnOpenLoopMakesEachEventOnce(t *testing.T) {
	t.Parallel()
	a := newArrivals[string](0)
	loop := &openLoop{clients: 3, arrivals: a, do: func(_ context.Context, n int) (string, error) {
		event := string(rune('a' + n))
		a.note(event)
		return event, nil
	}}
	for _, due := range [][]time.Duration{make([]time.Duration, 5), {0, time.Millisecond}} {
		_, err := loop.run(t.Context(), due)
		require.NoError(t, err)
	}
	require.Equal(t, 7, loop.done)
	require.Len(t, a.at, 7)

	broken := errors.New("broken")
	loop.do = func(context.Context, int) (string, error) { return "", broken }
	_, err := loop.run(t.Context(), make([]time.Duration, 5))
	require.ErrorIs(t, err, broken)
}

func TestCPUOfProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the figure is measured where there is /proc")
	}
	before, err := cpuOf(os.Getpid())
	require.NoError(t, err)
	testkit.Until(t, func() bool { // until this loop has used some
		after, err := cpuOf(os.Getpid())
		require.NoError(t, err)
		return after > before
	})
	require.GreaterOrEqual(t, loadAverage(), 0.0)
}
