package console

import (
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

// A chart shows the last quarter of an hour in steps, on a field of chartSteps by chartHeight.
const (
	chartStep   = 10 * time.Second
	chartSteps  = 90
	chartHeight = 100.0
)

func stepOf(at time.Time) int { return int(at.Unix()) / int(chartStep.Seconds()) }

// A figure is of a station at the end of a step.
type figure struct {
	of   func(old, cur adminapi.Station, seconds float64) *float64
	join func(a, b float64) float64 // of several stations
}

var (
	passed  = figure{of: rateOf, join: sum}
	waiting = figure{of: func(_, cur adminapi.Station, _ float64) *float64 { return cur.Waiting }, join: sum}
	oldest  = figure{of: func(_, cur adminapi.Station, _ float64) *float64 { return cur.AgeSeconds }, join: math.Max}
)

func rateOf(old, cur adminapi.Station, seconds float64) *float64 {
	return growth(old.Passed, cur.Passed, seconds)
}

func sum(a, b float64) float64 { return a + b }

// values has a gap at each step whose last call had no answer.
func (w *watched) values(s adminapi.Station, now time.Time, f figure) []*float64 {
	var last [chartSteps]sample
	for _, one := range w.past {
		if i := stepOf(one.at) - stepOf(now) + chartSteps - 1; i >= 0 && i < chartSteps {
			last[i] = one
		}
	}
	values := make([]*float64, chartSteps)
	var old sample
	for i, cur := range last {
		values[i] = f.of(old.find(s.Kind, s.Name), cur.find(s.Kind, s.Name), cur.at.Sub(old.at).Seconds())
		old = cur
	}
	return values
}

type chart struct {
	Title, Unit string
	Top         float64
	Lines       []line
}

type line struct {
	Name, Path string
	Latest     *float64
	values     []*float64
}

func (f *flow) charts(now time.Time) []chart {
	waits := [][2]string{{"outboxes", "outbox"}, {"inboxes", "inbox"}, {"mails", "mail"}}
	return []chart{
		f.chart(now, "Throughput", "per second", passed,
			[][2]string{{"requests", "http"}, {"published", "relay"}, {"handled", "inbox"}, {"mails", "mail"}}),
		f.chart(now, "Waiting", "", waiting, waits),
		f.chart(now, "Age of the oldest", "seconds", oldest, waits),
	}
}

// chart draws a line for each name and kind of station.
func (f *flow) chart(now time.Time, title, unit string, of figure, lines [][2]string) chart {
	c := chart{Title: title, Unit: unit, Top: 1}
	for _, named := range lines {
		l := line{Name: named[0], values: f.joined(named[1], now, of)}
		if len(l.values) > 0 {
			l.Latest = l.values[chartSteps-1]
		}
		c.Top = max(c.Top, top(l.values))
		c.Lines = append(c.Lines, l)
	}
	for i, l := range c.Lines {
		c.Lines[i].Path = drawPath(l.values, c.Top)
	}
	return c
}

// joined has a gap where one station has one.
func (f *flow) joined(kind string, now time.Time, of figure) (all []*float64) {
	for _, w := range f.services {
		for _, s := range w.known.Stations {
			if s.Kind != kind {
				continue
			}
			values := w.values(s, now, of)
			for i, before := range all {
				if before == nil || values[i] == nil {
					values[i] = nil
				} else {
					values[i] = new(of.join(*before, *values[i]))
				}
			}
			all = values
		}
	}
	return all
}

func top(values []*float64) (highest float64) {
	for _, v := range values {
		if v != nil {
			highest = max(highest, *v)
		}
	}
	return highest
}

func drawPath(values []*float64, top float64) string {
	var drawn strings.Builder
	isDrawing := false
	for i, v := range values {
		if v == nil {
			isDrawing = false
			continue
		}
		y := chartHeight - *v/top*chartHeight
		if !isDrawing { // a line of no length is a dot, so a value between two gaps is seen
			fmt.Fprintf(&drawn, "M%d %.1f", i, y)
		}
		fmt.Fprintf(&drawn, "L%d %.1f", i, y)
		isDrawing = true
	}
	return drawn.String()
}
