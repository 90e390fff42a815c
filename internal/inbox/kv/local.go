package kv

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// The library's expiry starts a goroutine that never ends.
type cache struct {
	ids       *lru.Cache[digest, time.Duration]
	began     time.Time // monotonic: setting the clock has no effect
	ttl       time.Duration
	evictions prometheus.Counter
}

func newCache(size int, ttl time.Duration, evictions prometheus.Counter) (*cache, error) {
	ids, err := lru.New[digest, time.Duration](size)
	if err != nil {
		return nil, err
	}
	return &cache{ids: ids, began: time.Now(), ttl: ttl, evictions: evictions}, nil
}

// The store may have forgotten an expired id.
func (c *cache) has(id digest) bool {
	until, known := c.ids.Get(id)
	if known && c.ttl > 0 && time.Since(c.began) >= until {
		c.ids.Remove(id)
		return false
	}
	return known
}

func (c *cache) add(id digest, since time.Time) {
	if c.ids.Add(id, since.Sub(c.began)+c.ttl) {
		c.evictions.Inc()
	}
}

// calls serializes the calls for one id in this process.
type calls struct {
	mu      sync.Mutex
	running map[digest]chan struct{}
	// unmarked are ids with an effect and no mark, with the revision to mark, after an outage.
	unmarked map[digest]uint64
}

func newCalls() *calls {
	return &calls{running: map[digest]chan struct{}{}, unmarked: map[digest]uint64{}}
}

func (c *calls) enter(ctx context.Context, id digest) (leave func(), err error) {
	for {
		c.mu.Lock()
		other, busy := c.running[id]
		if !busy {
			ended := make(chan struct{})
			c.running[id] = ended
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.running, id)
				c.mu.Unlock()
				close(ended)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the same event: %w", context.Cause(ctx))
		}
	}
}

func (c *calls) leaveUnmarked(id digest, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unmarked[id] = revision
}

func (c *calls) takeUnmarked(id digest) (revision uint64, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision, left = c.unmarked[id]
	delete(c.unmarked, id)
	return revision, left
}
