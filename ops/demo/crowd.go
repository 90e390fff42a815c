package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/twinbox/engine/failure"
)

// crowd does things at a steady rate, and repeats each until it is taken: a request may have been taken whose answer
// was lost.
type crowd struct {
	cfg Config

	mu    sync.Mutex
	made  map[int]string // ids by their numbers
	final error
}

func newCrowd(cfg Config) *crowd { return &crowd{cfg: cfg, made: map[int]string{}} }

// underWay is how many things may be under way at once. While the system does not answer, no more are begun.
const underWay = 64

// run begins one thing at once, and more until loading ends, and returns when the last one is done.
func (c *crowd) run(loading, whole context.Context, patience time.Duration) {
	tick := time.NewTicker(max(time.Duration(float64(time.Second)/c.cfg.Rate), time.Microsecond))
	defer tick.Stop()
	places := make(chan struct{}, underWay)
	var all sync.WaitGroup
	defer all.Wait()
	for n := 0; c.failure() == nil; n++ {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			c.insist(whole, n, patience)
		})
		select {
		case <-tick.C:
		case <-loading.Done():
			return
		}
	}
}

func (c *crowd) insist(ctx context.Context, n int, patience time.Duration) {
	again := failure.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for end := time.Now().Add(patience); ; {
		id, err := c.cfg.Act(ctx, n)
		_, final := errors.AsType[*FinalError](err)
		if err != nil && !final {
			if time.Now().Before(end) && pause(ctx, again.Next()) {
				continue
			}
			err = fmt.Errorf("no success for %s: %w", patience, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.made[n] = id
		} else if c.final == nil {
			c.final = err
		}
		return
	}
}

func (c *crowd) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.final
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.made)
}

// some are at most so many of what was made, by their numbers; 0: all.
func (c *crowd) some(most int) map[int]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[int]string{}
	for n, id := range c.made {
		if most > 0 && len(found) == most {
			break
		}
		found[n] = id
	}
	return found
}
