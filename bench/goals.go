package main

import (
	"math"
	"strings"
)

type goal struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Unit    string `json:"unit,omitempty"`
	summary        // of the rounds' own ratios, where it is a ratio
	Bound   string `json:"bound"` // "at least" or "at most"
	Limit   number `json:"limit"`
	Reached bool   `json:"reached"`
	Load    number `json:"load_average"` // the highest at the start of its measurements

	value quotient
	stock quotient // the same of stock, whose median is the limit; zero: Limit is
	worst bool     // the slowest round counts, not the median
}

const (
	atLeast = "at least"
	atMost  = "at most"
)

// Stock that did not keep up has no figure, and any figure of ours reaches the goal.
func (g goal) judge(s *sheet) goal {
	g.summary = summarise(s.rounds(g.value))
	g.Load = s.byID[g.value.of].highestLoad()
	if over := s.byID[g.value.over]; over != nil {
		g.Load = max(g.Load, over.highestLoad())
	}
	if g.stock.of != "" {
		g.Limit = summarise(s.rounds(g.stock)).Median
	}
	switch {
	case math.IsNaN(float64(g.Limit)):
		g.Reached = g.isMeasured()
	case g.Bound == atLeast:
		g.Reached = g.judged() >= g.Limit
	default:
		g.Reached = g.judged() <= g.Limit
	}
	return g
}

func (g goal) judged() number {
	if g.worst {
		return g.Max
	}
	return g.Median
}

func (g goal) isMeasured() bool { return !math.IsNaN(float64(g.Median)) }

func (g goal) bar() string { return g.Bound + " " + withUnit(g.Limit, g.Unit) }

func withUnit(n number, unit string) string { return strings.TrimSpace(format(n) + " " + unit) }
