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
	last time.Time
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
}

func (a *arrivals[K]) of(event K) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[event]
}

func (a *arrivals[K]) await(ctx context.Context, n int) error {
	arrived := 0
	err := poll(ctx, 10*time.Millisecond, func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		arrived = len(a.at)
		return arrived >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d events arrived: %w", arrived, n, err)
	}
	return nil
}

// The result names failed messages by their numbers.
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
