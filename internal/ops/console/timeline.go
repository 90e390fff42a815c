package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

type step struct {
	adminapi.StoryStep
	After time.Duration
}

func stepsOf(told []adminapi.StoryStep) []step {
	steps := make([]step, len(told))
	for i, s := range told {
		steps[i] = step{s, s.At.Sub(told[0].At)}
	}
	return steps
}

const (
	maxDots     = 24 // of the steps; the list below the picture has all
	columnWidth = 96
	rowHeight   = 46
	labelWidth  = 190
	pictureTop  = 28
)

type picture struct {
	Width, Height int
	Rows          []row
	Way           string // the path through the dots
	Dots          []dot
	More          int // steps that are not in the picture
}

type row struct {
	Name string
	Y    int
}

type dot struct {
	X, Y         int
	Label, After string
	State        adminapi.StationState
}

// Nil: the story has no step.
func pictureOf(told []adminapi.StoryStep) *picture {
	steps := stepsOf(told[:min(len(told), maxDots)])
	if len(steps) == 0 {
		return nil
	}
	var places []string
	for _, s := range steps {
		if place := placeOf(s); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	p := &picture{
		Width: labelWidth + len(steps)*columnWidth, Height: pictureTop + len(places)*rowHeight,
		More: len(told) - len(steps),
	}
	for i, name := range places {
		p.Rows = append(p.Rows, row{name, pictureTop + i*rowHeight})
	}
	for i, s := range steps {
		d := dot{
			X: labelWidth + i*columnWidth + columnWidth/2, Y: pictureTop + slices.Index(places, placeOf(s))*rowHeight,
			Label: cmp.Or(s.Outcome, string(s.Station)), After: after(s.After), State: stateOfStep(s.StoryStep),
		}
		p.Dots = append(p.Dots, d)
		p.Way += fmt.Sprintf("L%d %d", d.X, d.Y)
	}
	p.Way = "M" + p.Way[1:]
	return p
}

func placeOf(s step) string {
	return s.Who() + " " + strings.ReplaceAll(string(s.Station), "_", " ")
}

var badOutcomes = map[adminapi.StationState][]string{
	adminapi.Watch:   {"waiting", "held", "gap", "parked", "uncertain", "stale"},
	adminapi.Stopped: {"expired", "conflict", "dead", "failed", "discarded"},
}

func stateOfStep(s adminapi.StoryStep) adminapi.StationState {
	if s.Station == adminapi.StoryStepStationDeadLetter && s.Outcome == "waiting" {
		return adminapi.Stopped
	}
	for state, outcomes := range badOutcomes {
		if slices.Contains(outcomes, s.Outcome) {
			return state
		}
	}
	return adminapi.Well
}
