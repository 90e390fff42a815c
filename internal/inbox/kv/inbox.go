package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

// Outcome is the result of one delivery.
type Outcome string

// The outcomes. Each is counted in inbox_kv_messages_total.
const (
	Applied   Outcome = "applied"   // the handler ran, and the id is remembered
	Duplicate Outcome = "duplicate" // the id was remembered
	Failed    Outcome = "failed"    // repeat the delivery
)

// Inbox remembers for any number of consumers. It is safe for concurrent use and starts no goroutine.
type Inbox struct {
	cfg     Config
	store   Store
	life    string
	cache   *cache
	calls   *calls
	metrics *metrics
	away    atomic.Bool
}

// New returns an inbox that remembers in the store.
func New(store Store, cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := newMetrics(cfg.Registerer)
	known, err := newCache(cfg.Cache, store.TTL(), m.evictions)
	if err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	return &Inbox{cfg: cfg, store: store, life: rand.Text(), cache: known, calls: newCalls(), metrics: m}, nil
}

// call is one delivery under way.
type call struct {
	*Inbox
	consumer, id string
	digest       digest
	key          string
}

// Process runs fn unless the consumer has processed the id. It returns [Applied], or [Duplicate] without running fn.
// When fn fails it returns [Failed] and fn's error; call again. Calls for one id wait for each other.
//
// Without an answer from the store it returns Failed and an [ErrUnavailable]; after the effect it first tries to store
// the mark until ctx ends. For ids see [event.ValidID]; the errors of an invalid id or consumer are permanent.
func (in *Inbox) Process(
	ctx context.Context, consumer, id string, fn func(context.Context) error,
) (outcome Outcome, err error) {
	outcome, err = in.process(ctx, consumer, id, fn)
	in.metrics.messages.WithLabelValues(consumer, string(outcome)).Inc()
	return outcome, err
}

var errConsumer = errors.New("kv inbox: a consumer's name is missing or has a NUL")

func (in *Inbox) process(
	ctx context.Context, consumer, id string, fn func(context.Context) error,
) (Outcome, error) {
	if consumer == "" || strings.Contains(consumer, "\x00") {
		return Failed, failure.AsPermanent(errConsumer)
	}
	if err := event.ValidID(id); err != nil {
		return Failed, failure.AsPermanent(err)
	}
	digest := digestOf(consumer, id)
	c := &call{in, consumer, id, digest, digest.key()}
	leave, err := in.calls.enter(ctx, digest)
	if err != nil {
		return Failed, err
	}
	defer leave()
	if in.cache.has(digest) {
		c.found("cache")
		return Duplicate, nil
	}
	if revision, left := in.calls.takeUnmarked(digest); left {
		return c.mark(ctx, revision)
	}
	revision, err := c.claim(ctx)
	switch {
	case errors.Is(err, errDone):
		c.found("store")
		return Duplicate, nil
	case err != nil:
		return Failed, err
	}
	c.found("nowhere")
	fault.Here("inbox.kv.claimed")
	handling, cancel := context.WithTimeout(ctx, in.cfg.HandlerTimeout)
	defer cancel()
	if err := fn(handling); err != nil {
		c.release(ctx, revision)
		return Failed, err
	}
	fault.Here("inbox.kv.handled")
	outcome, err := c.mark(ctx, revision)
	fault.Here("inbox.kv.marked")
	return outcome, err
}

func (c *call) found(where string) { c.metrics.lookups.WithLabelValues(c.consumer, where).Inc() }
