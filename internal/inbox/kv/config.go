package kv

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures an inbox. The zero value is valid.
type Config struct {
	// Owner names this instance, uniquely, and is the same after a restart. A process takes over its own name's claims
	// immediately, and others after HandlerTimeout. Default: a random name.
	Owner string
	// Cache is the number of done ids in memory, of about 200 bytes each. Default: 100,000.
	Cache int
	// HandlerTimeout bounds the handler's context. Another process's claim is respected for this long plus three times
	// StoreTimeout. Default: 10 s.
	HandlerTimeout time.Duration
	// StoreTimeout bounds each call of the store. Default: 2 s.
	StoreTimeout time.Duration
	// Log receives the store's loss and return, and possible second effects; never a payload. Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer

	// Pauses for a store that does not answer, or has another process's claim. Shorter in tests.
	retryMin, retryMax time.Duration
}

func (c Config) withDefaults() Config {
	c.Owner = cmp.Or(c.Owner, rand.Text())
	c.Cache = cmp.Or(c.Cache, 100_000)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 10*time.Second)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 2*time.Second)
	c.retryMin = cmp.Or(c.retryMin, 50*time.Millisecond)
	c.retryMax = cmp.Or(c.retryMax, 5*time.Second)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

func (c Config) validate() error {
	if c.Cache < 1 || min(c.HandlerTimeout, c.StoreTimeout) < 0 {
		return errors.New("kv inbox: cache and timeouts must be positive")
	}
	return nil
}

// patience is how long the claim of another process is respected.
func (c Config) patience() time.Duration { return c.HandlerTimeout + 3*c.StoreTimeout }
