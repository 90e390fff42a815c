package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

type figure struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Unit  string `json:"unit"`
	summary
	Rounds []number `json:"rounds"`
	Loads  []number `json:"load_averages"` // of the machine when each round began
}

type group struct {
	Title   string    `json:"title"`
	Note    string    `json:"note,omitempty"`
	Figures []*figure `json:"figures"`
}

// The sheet is laid out before any measurement, so their order does not matter.
type sheet struct {
	groups []*group
	byID   map[string]*figure
	load   float64 // average of the machine when the measurement began
}

func newSheet(groups ...*group) *sheet {
	s := &sheet{groups: groups, byID: map[string]*figure{}}
	for _, g := range groups {
		for _, f := range g.Figures {
			s.byID[f.ID] = f
		}
	}
	return s
}

// add panics for an id that is not laid out. It leaves out NaN: the system cannot measure the value.
func (s *sheet) add(id string, value float64) {
	f := s.byID[id]
	if f == nil {
		panic(fmt.Sprintf("figure %q is not laid out", id))
	}
	if math.IsNaN(value) {
		return
	}
	f.Rounds, f.Loads = append(f.Rounds, number(value)), append(f.Loads, number(s.load))
	f.summary = summarise(f.Rounds)
}

// quotient is a figure, or with over the ratio of two.
type quotient struct{ of, over string }

// rounds divides round by round: two variants of one round ran within seconds, so other work affects both.
func (s *sheet) rounds(q quotient) []number {
	of := s.byID[q.of].Rounds
	if q.over == "" {
		return of
	}
	over := s.byID[q.over].Rounds
	var ratios []number
	for i := range min(len(of), len(over)) {
		if over[i] != 0 {
			ratios = append(ratios, of[i]/over[i])
		}
	}
	return ratios
}

func (f *figure) highestLoad() number {
	if len(f.Loads) == 0 {
		return number(math.NaN())
	}
	return slices.Max(f.Loads)
}

func (s *sheet) measured() (groups []*group) {
	for _, g := range s.groups {
		kept := *g
		kept.Figures = slices.DeleteFunc(slices.Clone(g.Figures), func(f *figure) bool { return len(f.Rounds) == 0 })
		if len(kept.Figures) > 0 {
			groups = append(groups, &kept)
		}
	}
	return groups
}

type summary struct {
	Median number `json:"median"`
	Min    number `json:"min"`
	Max    number `json:"max"`
}

// Without values summarise returns NaN: "not measured" must not look like zero.
func summarise(values []number) summary {
	if len(values) == 0 {
		nan := number(math.NaN())
		return summary{nan, nan, nan}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return summary{median, sorted[0], sorted[len(sorted)-1]}
}

// percentile is the smallest value that at least p percent of the values do not exceed (nearest rank), in milliseconds.
// The values must be sorted; without any it is NaN.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return milliseconds(sorted[min(max(rank, 1), len(sorted))-1])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// JSON has no NaN: a missing value is null.
type number float64

// MarshalJSON rounds to six significant digits: the rest is noise.
func (n number) MarshalJSON() ([]byte, error) { //nolint:unparam // it has the signature of json.Marshaler
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 6, 64), nil
}
