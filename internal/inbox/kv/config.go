package kv

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
)

// OutagePolicy is the treatment of events while the store does not answer.
type OutagePolicy string

const (
	// Pause makes the middleware, and so the partition, wait. The default.
	Pause OutagePolicy = "pause"
	// Apply handles the event, perhaps a second time.
	Apply OutagePolicy = "apply"
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
	// RetryMin and RetryMax bound the pauses for a store that does not answer, or has another process's claim. Default:
	// 50 ms and 5 s.
	RetryMin, RetryMax time.Duration
	// OnOutage defaults to Pause.
	OnOutage OutagePolicy
	// ID returns a message's id. Default: the CloudEvents id, else the message's UUID.
	ID func(*message.Message) string
	// Log receives the store's loss and return, and possible second effects; never a payload. Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	c.Owner = cmp.Or(c.Owner, rand.Text())
	c.Cache = cmp.Or(c.Cache, 100_000)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 10*time.Second)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 2*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, 50*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, max(5*time.Second, c.RetryMin))
	c.OnOutage = cmp.Or(c.OnOutage, Pause)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.ID == nil {
		c.ID = eventID
	}
	return c
}

func eventID(msg *message.Message) string {
	return cmp.Or(msg.Metadata.Get(event.HeaderID), msg.UUID)
}

// validate returns all mistakes.
func (c Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("kv inbox: "+format, args...)) }
	if c.Cache < 1 {
		wrong("cache of %d ids, want at least 1", c.Cache)
	}
	if c.HandlerTimeout < 0 || c.StoreTimeout < 0 {
		wrong("handler timeout %s, store timeout %s: want positive", c.HandlerTimeout, c.StoreTimeout)
	}
	if c.RetryMin < 0 || c.RetryMax < c.RetryMin {
		wrong("retry %s to %s: want positive and in order", c.RetryMin, c.RetryMax)
	}
	if c.OnOutage != Pause && c.OnOutage != Apply {
		wrong("outage policy %q is neither pause nor apply", c.OnOutage)
	}
	return errors.Join(errs...)
}

// patience is how long the claim of another process is respected.
func (c Config) patience() time.Duration { return c.HandlerTimeout + 3*c.StoreTimeout }
