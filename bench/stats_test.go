package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":              {[]float64{7}, 7},
		"odd, not sorted":  {[]float64{9, 1, 5}, 5},
		"even":             {[]float64{4, 1, 3, 2}, 2.5},
		"outlier has none": {[]float64{1, 1, 1, 1, 1000}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, tc.want, median(tc.values), 0)
		})
	}
	require.True(t, math.IsNaN(median(nil)))
}

func TestMedianLeavesItsArgumentAlone(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values)
}

func TestSummarise(t *testing.T) {
	t.Parallel()
	require.Equal(t, summary{Median: 2, Min: 1, Max: 6}, summarise([]float64{2, 6, 1}))
	require.True(t, math.IsNaN(float64(summarise(nil).Max)), "not measured is not zero")
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for p, want := range map[float64]time.Duration{0: 1, 1: 1, 50: 50, 99: 99, 99.5: 100, 100: 100} {
		require.Equal(t, want, percentile(hundred, p), "p%v", p)
	}
	require.Equal(t, time.Duration(3), percentile([]time.Duration{3}, 99))
	require.Zero(t, percentile(nil, 50))
}

func TestMilliseconds(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 1500, milliseconds(1500*time.Millisecond), 0)
	require.InDelta(t, 0.25, milliseconds(250*time.Microsecond), 0)
}

func TestRatiosPairTheRounds(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float64{2, 3}, ratios([]float64{2, 6}, []float64{1, 2}))
	require.Equal(t, []float64{2}, ratios([]float64{2, 6}, []float64{1}), "a round that is missing is left out")
	require.Equal(t, []float64{3}, ratios([]float64{2, 6}, []float64{0, 2}), "so is one that measured nothing")
	require.Empty(t, ratios(nil, []float64{1}))
}
