package console

import (
	"fmt"
	"slices"
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

// Zero: the service did not answer, at least once.
func (w *watched) atStep(step int) (found sample) {
	i, _ := slices.BinarySearchFunc(w.past, step, func(s sample, step int) int { return stepOf(s.at) - step })
	for ; i < len(w.past) && stepOf(w.past[i].at) == step; i++ {
		if w.past[i].err != nil {
			return sample{}
		}
		found = w.past[i]
	}
	return found
}

type figure func(old, cur adminapi.Station, seconds float64) *float64

func rateOf(old, cur adminapi.Station, seconds float64) *float64 {
	return growth(old.Passed, cur.Passed, seconds)
}
func waitingAt(_, cur adminapi.Station, _ float64) *float64 { return cur.Waiting }
func ageAt(_, cur adminapi.Station, _ float64) *float64     { return cur.AgeSeconds }

func (w *watched) values(s adminapi.Station, now time.Time, of figure) []*float64 {
	values := make([]*float64, chartSteps)
	old := w.atStep(stepOf(now) - chartSteps)
	for i := range values {
		cur := w.atStep(stepOf(now) - chartSteps + i + 1)
		values[i] = of(old.find(s.Kind, s.Name), cur.find(s.Kind, s.Name), cur.at.Sub(old.at).Seconds())
		old = cur
	}
	return values
}

type chart struct {
	Title, Unit string
	Top         float64
	Lines       []line
}

// A step in which a service did not answer is a gap.
type line struct {
	Name, Path string
	Latest     *float64
	values     []*float64
}

func (f *flow) charts(now time.Time) []chart {
	line := func(name, kind string, of figure, join func(a, b float64) float64) line {
		return f.line(name, kind, now, of, join)
	}
	sum := func(a, b float64) float64 { return a + b }
	highest := func(a, b float64) float64 { return max(a, b) }
	return []chart{
		newChart("Throughput", "per second", line("requests", "http", rateOf, sum), line("published", "relay", rateOf, sum),
			line("handled", "inbox", rateOf, sum), line("mails", "mail", rateOf, sum)),
		newChart("Waiting", "", line("outboxes", "outbox", waitingAt, sum), line("inboxes", "inbox", waitingAt, sum),
			line("mails", "mail", waitingAt, sum)),
		newChart("Age of the oldest", "seconds", line("outboxes", "outbox", ageAt, highest),
			line("inboxes", "inbox", ageAt, highest), line("mails", "mail", ageAt, highest)),
	}
}

// The sum is unknown where one value is.
func (f *flow) line(name, kind string, now time.Time, of figure, join func(a, b float64) float64) line {
	l := line{Name: name}
	for _, w := range f.services {
		for _, s := range w.known {
			if s.Kind != kind {
				continue
			}
			values := w.values(s, now, of)
			for i, before := range l.values {
				if before == nil || values[i] == nil {
					values[i] = nil
				} else {
					values[i] = new(join(*before, *values[i]))
				}
			}
			l.values = values
		}
	}
	if len(l.values) > 0 {
		l.Latest = l.values[chartSteps-1]
	}
	return l
}

func newChart(title, unit string, lines ...line) chart {
	c := chart{Title: title, Unit: unit, Top: 1, Lines: lines}
	for _, l := range lines {
		c.Top = max(c.Top, top(l.values))
	}
	for i := range c.Lines {
		c.Lines[i].Path = scaledPath(c.Lines[i].values, c.Top)
	}
	return c
}

func top(values []*float64) (highest float64) {
	for _, v := range values {
		if v != nil {
			highest = max(highest, *v)
		}
	}
	return highest
}

func drawPath(values []*float64) string { return scaledPath(values, max(1, top(values))) }

func scaledPath(values []*float64, top float64) string {
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
