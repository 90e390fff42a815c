package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/fault"
)

// sender makes the calls of Publish. It has at most one flight in the air.
type sender struct {
	publisher message.Publisher
	timeout   time.Duration // of a call
	deadline  time.Duration // of a flight
	metrics   *relayMetrics
	last      *flight
}

// flight is one round of calls, one per topic, in a goroutine of its own: the next page is read meanwhile.
type flight struct {
	records []record
	results []error   // per record; nil: taken
	lostAt  time.Time // when it counts as lost: before the lease is over
	landed  chan struct{}
}

var (
	errPublishTimeout = errors.New("outbox: the publisher did not answer in time")
	// errBehind is the result of a record that may have been taken, but whose key had failed before: it is sent again.
	errBehind = errors.New("outbox: an earlier record of the key failed")
)

// launch sends the records. Their order within a topic is that of their positions.
func (s *sender) launch(ctx context.Context, records []record) *flight {
	f := &flight{
		records: records, results: make([]error, len(records)), lostAt: time.Now().Add(s.deadline),
		landed: make(chan struct{}),
	}
	s.last = f
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.timeout, errPublishTimeout)
	go func() {
		defer close(f.landed)
		defer cancel()
		s.fly(ctx, f)
	}()
	return f
}

// wait returns when the flight has landed. One that is late may still land, with anything; until then nothing else may
// be sent, and the lease is left to run out.
func (f *flight) wait() error { return f.waitFor(time.Until(f.lostAt)) }

func (f *flight) hasLanded() bool {
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

func (f *flight) waitFor(grace time.Duration) error {
	if f.hasLanded() { // however late
		return nil
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-f.landed:
		return nil
	case <-timer.C:
		return errPublishTimeout
	}
}

func (s *sender) busy() bool {
	return s.last != nil && !s.last.hasLanded()
}

// await waits for a late flight.
func (s *sender) await(ctx context.Context) error {
	if s.last == nil {
		return nil
	}
	select {
	case <-s.last.landed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain is await for the end of the relay: not for ever.
func (s *sender) drain(grace time.Duration) error {
	if s.last == nil {
		return nil
	}
	if err := s.last.waitFor(grace); err != nil {
		return fmt.Errorf("stop relay: %w", err)
	}
	return nil
}

func (s *sender) fly(ctx context.Context, f *flight) {
	fault.Here("relay.publish.before")
	began := time.Now()
	calls := callsOf(f.records)
	done := make(chan struct{}, len(calls))
	for _, c := range calls[1:] {
		go func() {
			c.send(ctx, s.publisher, f.results)
			done <- struct{}{}
		}()
	}
	calls[0].send(ctx, s.publisher, f.results)
	for range calls[1:] {
		<-done
	}
	f.holdBack()
	s.metrics.observe(f, time.Since(began))
	fault.Here("relay.publish.after")
}

// holdBack marks everything that follows a key's first failure as failed too, whatever became of it.
func (f *flight) holdBack() {
	var failed map[keyName]bool
	for i, err := range f.results {
		name := f.records[i].name()
		switch {
		case failed[name]:
			f.results[i] = errBehind
		case err != nil:
			if failed == nil {
				failed = map[keyName]bool{}
			}
			failed[name] = true
		}
	}
}
