package kv

import (
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
