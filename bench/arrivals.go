package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/outbox/relay"
)

type arrivals[K comparable] struct {
	mu   sync.Mutex
	at   map[K]time.Time
	last time.Time // of the newest one
	want int
	all  chan struct{} // closed when as many as wanted have arrived
}

func newArrivals[K comparable](size int) *arrivals[K] {
	return &arrivals[K]{at: make(map[K]time.Time, size)}
}

func (a *arrivals[K]) note(event K) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.at[event]; known {
		return
	}
	a.at[event], a.last = now, now
	if a.all != nil && len(a.at) == a.want {
		close(a.all)
		a.all = nil
	}
}

func (a *arrivals[K]) of(event K) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[event]
}

// await returns when n events have arrived. It has one caller at a time.
func (a *arrivals[K]) await(ctx context.Context, n int) error {
	a.mu.Lock()
	if len(a.at) >= n {
		a.mu.Unlock()
		return nil
	}
	all := make(chan struct{})
	a.want, a.all = n, all
	a.mu.Unlock()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		return fmt.Errorf("%d of %d events arrived: %w", len(a.at), n, context.Cause(ctx))
	}
}

func noteTaken(events *arrivals[string], msgs []*message.Message, err error) {
	partial, isPartial := errors.AsType[relay.FailedIndexes](err)
	if err != nil && !isPartial {
		return
	}
	for i, m := range msgs {
		if isPartial && partial.FailedIndexes()[i] != nil {
			continue
		}
		if n, err := numberOf(m.Payload); err == nil {
			events.note(strconv.Itoa(n))
		}
	}
}
