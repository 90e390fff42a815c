package main

import (
	"math"
	"slices"
	"time"
)

// summary is what is kept of a figure's rounds.
type summary struct {
	Median number `json:"median"`
	Min    number `json:"min"`
	Max    number `json:"max"`
}

// summarise returns NaN three times for no values: "not measured" must not look like zero.
func summarise(values []float64) summary {
	if len(values) == 0 {
		nan := number(math.NaN())
		return summary{nan, nan, nan}
	}
	return summary{number(median(values)), number(slices.Min(values)), number(slices.Max(values))}
}

// median is the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the smallest value that at least p percent of the values do not exceed (nearest rank). The values must
// be sorted.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// ratios divides round by round: two variants of one round ran within seconds of each other, so what else the machine
// did at the time falls out of their ratio.
func ratios(numerators, denominators []float64) []float64 {
	out := make([]float64, 0, len(numerators))
	for i := range min(len(numerators), len(denominators)) {
		if denominators[i] != 0 {
			out = append(out, numerators[i]/denominators[i])
		}
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
