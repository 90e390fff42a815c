package main

import (
	"encoding/json"
	"fmt"
	"math"
)

// figure is one measured quantity with all its rounds.
type figure struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Unit  string `json:"unit"`
	summary
	Rounds []float64 `json:"rounds"`
}

// group is the figures that belong in one block of the table and one panel of the picture.
type group struct {
	Title   string    `json:"title"`
	Note    string    `json:"note,omitempty"`
	Figures []*figure `json:"figures"`
}

// sheet collects what is measured. Its groups and figures are laid out before anything runs, so that their order does
// not depend on what was measured first.
type sheet struct {
	groups []*group
	byID   map[string]*figure
}

func newSheet(groups ...*group) *sheet {
	s := &sheet{groups: groups, byID: map[string]*figure{}}
	for _, g := range groups {
		for _, f := range g.Figures {
			if s.byID[f.ID] != nil {
				panic("figure defined twice: " + f.ID)
			}
			s.byID[f.ID] = f
		}
	}
	return s
}

// add notes one round's value. The figure must be laid out: a misspelt id is a mistake in this program.
func (s *sheet) add(id string, value float64) {
	f := s.byID[id]
	if f == nil {
		panic(fmt.Sprintf("figure %q is not laid out", id))
	}
	f.Rounds = append(f.Rounds, significant(value))
	f.summary = summarise(f.Rounds)
}

// rounds returns the values of a figure, none if it was not measured.
func (s *sheet) rounds(id string) []float64 {
	if f := s.byID[id]; f != nil {
		return f.Rounds
	}
	return nil
}

// measured returns the groups without what was not measured.
func (s *sheet) measured() []*group {
	var out []*group
	for _, g := range s.groups {
		kept := &group{Title: g.Title, Note: g.Note}
		for _, f := range g.Figures {
			if len(f.Rounds) > 0 {
				kept.Figures = append(kept.Figures, f)
			}
		}
		if len(kept.Figures) > 0 {
			out = append(out, kept)
		}
	}
	return out
}

// goal compares a figure with what was promised.
type goal struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Unit    string `json:"unit,omitempty"`
	summary        // of the rounds' own ratios, where it is a ratio
	Bound   string `json:"bound"` // "at least" or "at most"
	Limit   number `json:"limit"`
	Reached bool   `json:"reached"`
}

const (
	atLeast = "at least"
	atMost  = "at most"
)

func newGoal(id, label, unit, bound string, limit float64, rounds []float64) goal {
	g := goal{ID: id, Label: label, Unit: unit, Bound: bound, Limit: number(limit), summary: summarise(rounds)}
	g.Reached = float64(g.Median) >= limit
	if bound == atMost {
		g.Reached = float64(g.Median) <= limit
	}
	return g
}

// number is a float that JSON can hold: what was not measured is null.
type number float64

// MarshalJSON rounds to five significant digits: the rest is noise.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(significant(float64(n)))
}

const digits = 5

func significant(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(v))))
	if scale <= 1 {
		return math.Round(v)
	}
	return math.Round(v*scale) / scale
}
