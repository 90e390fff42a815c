package replay

import (
	"context"
	"time"

	"example.com/twinbox/engine/inbox"
)

// Pace keeps what one goroutine begins apart in time. Time that slow work took is not made up for: one beginning
// follows it at once and not a burst. Replays that share one keep to it together, one after the other.
type Pace struct {
	every time.Duration // 0: no bound
	next  time.Time     // no beginning before
}

// slowest keeps a rate next to nothing from running over into no bound at all.
const slowest = 100 * 365 * 24 * time.Hour

// NewPace bounds the beginnings per second. A rate that is not above 0 is no bound.
func NewPace(rate float64) *Pace {
	if rate <= 0 {
		return &Pace{}
	}
	return &Pace{every: time.Duration(min(float64(time.Second)/rate, float64(slowest)))}
}

// Await returns when the next one may begin, or early with the reason when ctx ends. A nil pace is no bound.
func (p *Pace) Await(ctx context.Context) error {
	if p == nil || p.every == 0 {
		return nil
	}
	now := time.Now()
	if wait := p.next.Sub(now); wait > 0 {
		if err := (inbox.Standalone{}).Pause(ctx, nil, wait); err != nil {
			return err
		}
	} else {
		p.next = now
	}
	p.next = p.next.Add(p.every)
	return nil
}
