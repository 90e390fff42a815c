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

// OutagePolicy says what to do with an event while the store does not answer.
type OutagePolicy string

const (
	// Pause handles no event that the store has not been asked about: the partition waits. The default.
	Pause OutagePolicy = "pause"
	// Apply handles the event without asking: better twice than late.
	Apply OutagePolicy = "apply"
)

// Config says how patient an inbox is. The zero value is fine.
type Config struct {
	// Owner names this instance among those that run at the same time, and is the same after a restart: a pod of a
	// stateful set, a group instance id. A process takes over at once what died under its own name, else after
	// HandlerTimeout. Default: a random name.
	Owner string
	// Cache is how many ids are known to be done without asking the store, about 200 bytes each. Default: 100,000.
	Cache int
	// HandlerTimeout bounds the handler. An id that another process began is left alone for this long plus three times
	// StoreTimeout. Default: 10 s.
	HandlerTimeout time.Duration
	// StoreTimeout bounds each question to the store. Default: 2 s.
	StoreTimeout time.Duration
	// RetryMin and RetryMax bound the pauses between questions to the store: they double, with jitter. Default: 50 ms and
	// 5 s.
	RetryMin, RetryMax time.Duration
	// OnOutage is what becomes of events while the store does not answer. Default: Pause.
	OnOutage OutagePolicy
	// ID is the id of a message. Default: the CloudEvents id, or else the message's UUID.
	ID func(*message.Message) string
	// Log receives a line when the store is lost, one when it is back, and one for each possible second effect; no
	// payload. Default: slog.Default().
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

// eventID is the CloudEvents id, which a relay of this project writes, or Watermill's own.
func eventID(msg *message.Message) string {
	return cmp.Or(msg.Metadata.Get(event.HeaderID), msg.UUID)
}

// validate reports every mistake at once.
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

// patience is for the handler of another process, and its questions before and after.
func (c Config) patience() time.Duration { return c.HandlerTimeout + 3*c.StoreTimeout }
