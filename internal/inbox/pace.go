package inbox

import (
	"context"
	"time"
)

// pace keeps what one goroutine begins apart in time. Time that slow work took is not made up for: one beginning
// follows it at once and not a burst.
type pace struct {
	every time.Duration // 0: no bound
	next  time.Time     // no beginning before
}

// slowest keeps a rate next to nothing from running over into no bound at all.
const slowest = 100 * 365 * 24 * time.Hour

// newPace bounds the beginnings per second. 0 is no bound.
func newPace(rate float64) pace {
	if rate == 0 {
		return pace{}
	}
	return pace{every: time.Duration(min(float64(time.Second)/rate, float64(slowest)))}
}

// await returns when the next one may begin, or early with the reason when ctx ends.
func (p *pace) await(ctx context.Context) error {
	if p.every == 0 {
		return nil
	}
	now := time.Now()
	if wait := p.next.Sub(now); wait > 0 {
		if err := pause(ctx, wait); err != nil {
			return err
		}
	} else {
		p.next = now
	}
	p.next = p.next.Add(p.every)
	return nil
}
