package main

import (
	"context"
	"time"
)

// What "held" means: the rate does not run away, and 99 of 100 signups are in the other service's inbox within
// heldBound of the moment that they were due.
const (
	heldBound = 500 * time.Millisecond
	// stepDown is by how much less is tried when a rate that passed the probes is not held for the whole time.
	stepDown     = 0.92
	confirmTries = 6 // together they stay within stepTimeout
)

// search finds the highest rate for which try says true: doubling, then halving what is in question, until the highest
// that was held and the lowest that was not differ by less than closeEnough. It returns 0 if not even a tenth of the
// first rate is held.
func search(first, closeEnough float64, try func(rate float64) (bool, error)) (float64, error) {
	low, high := 0.0, 0.0
	for rate := first; high == 0 || low == 0 || high/low > closeEnough; {
		held, err := try(rate)
		if err != nil {
			return 0, err
		}
		if held {
			low = rate
		} else {
			high = rate
		}
		switch {
		case high == 0:
			rate = 2 * low
		case low > 0:
			rate = (low + high) / 2
		case high <= first/10:
			return 0, nil
		default:
			rate = high / 2
		}
	}
	return low, nil
}

// confirm goes down from a rate until one is held; 0 if none of confirmTries is.
func confirm(rate float64, try func(rate float64) (bool, error)) (float64, error) {
	for range confirmTries {
		held, err := try(rate)
		if held || err != nil {
			return rate, err
		}
		rate *= stepDown
	}
	return 0, nil
}

// held measures the highest rate that a line holds: short probes to find it, then the whole time to prove it.
func (b *pathBench) held(ctx context.Context, name string, l *openLine, profile string) error {
	try := func(length time.Duration, profile string) func(float64) (bool, error) {
		return func(rate float64) (bool, error) {
			tell(ctx, "%.0f/s for %s", rate, length)
			p, err := b.loaded(ctx, l, uint64(l.signed), rate, length, heldBound, profile)
			if err != nil {
				return false, err
			}
			held, why := p.verdict(l.arrivals)
			b.probes = append(b.probes, probe{name, number(rate), number(length.Seconds()), held, why})
			return held, nil
		}
	}
	best, err := search(b.plan.ProbeFrom, b.plan.CloseEnough, try(b.plan.ProbeFor, ""))
	if err != nil {
		return err
	}
	if best > 0 {
		best, err = confirm(best, try(b.plan.HoldFor, profile))
	}
	if err == nil {
		b.sheet.add("held."+name, best)
	}
	return err
}

// probe is one step of the search, as the results list it.
type probe struct {
	Line    string `json:"line"`
	Rate    number `json:"rate_per_s"`
	Seconds number `json:"seconds"`
	Held    bool   `json:"held"`
	Why     string `json:"why"`
}
