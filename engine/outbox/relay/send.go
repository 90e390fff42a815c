package relay

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox/window"
)

// sender makes the calls of Publish, and knows what was taken and is not yet recorded. It outlives sessions. It has at
// most one flight in the air.
type sender struct {
	publisher  message.Publisher
	timeout    time.Duration // of a call
	deadline   time.Duration // of a flight
	metrics    *metrics
	spans      *cloudevent.Spans // part: observability
	last       *flight
	unrecorded receipts
}

// flight is one round of calls, one per topic, in a goroutine of its own: the next page is read meanwhile. A nil flight
// has nothing to send and has landed.
type flight struct {
	records []window.Record
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
func (s *sender) launch(ctx context.Context, records []window.Record) *flight {
	if len(records) == 0 {
		return nil
	}
	f := &flight{
		records: records, results: make([]error, len(records)), lostAt: time.Now().Add(s.deadline),
		landed: make(chan struct{}),
	}
	s.last = f
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.timeout, errPublishTimeout)
	go func() {
		defer close(f.landed)
		defer cancel()
		s.send(ctx, f)
	}()
	return f
}

// wait returns when the flight has landed. One that is late may still land, with anything; until then nothing else may
// be sent, and the lease is left to run out.
func (f *flight) wait() error {
	if f == nil {
		return nil
	}
	return f.waitFor(context.Background(), time.Until(f.lostAt))
}

// waitFor prefers a flight that has landed, however late.
func (f *flight) waitFor(ctx context.Context, grace time.Duration) error {
	if f.hasLanded() {
		return nil
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-f.landed:
		return nil
	case <-timer.C:
		return errPublishTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *flight) hasLanded() bool {
	if f == nil {
		return true
	}
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

// collect sorts the results of a flight that has landed: what was taken gets a receipt, what was not is returned.
func (s *sender) collect(f *flight) []failedRecord {
	if f == nil || f.wait() != nil {
		return nil
	}
	var failed []failedRecord
	for i, err := range f.results {
		if err != nil {
			failed = append(failed, failedRecord{f.records[i], err})
		} else {
			s.unrecorded.add(&f.records[i])
		}
	}
	return failed
}

// send makes the calls of a flight, all at once.
func (s *sender) send(ctx context.Context, f *flight) {
	fault.Here("relay.publish.before")
	began := time.Now()
	calls := callsOf(f.records)
	done := make(chan struct{}, len(calls))
	for _, c := range calls[1:] {
		go func() {
			s.call(ctx, c, f)
			done <- struct{}{}
		}()
	}
	s.call(ctx, calls[0], f)
	for range calls[1:] {
		<-done
	}
	f.holdBack()
	s.metrics.observeFlight(f, calls, time.Since(began))
	fault.Here("relay.publish.after")
}

// call makes one of them, and tells of it.
func (s *sender) call(ctx context.Context, c *call, f *flight) {
	end := s.spans.Send(c.topic, c.events) // part: observability
	c.publish(ctx, s.publisher, f.results)
	end(c.firstError(f.results)) // part: observability
}

// holdBack marks each record behind a key's first failure as failed too, also an acknowledged one.
func (f *flight) holdBack() {
	var failed map[window.Key]bool
	for i, err := range f.results {
		key := f.records[i].Key()
		switch {
		case failed[key]:
			f.results[i] = errBehind
		case err != nil:
			if failed == nil {
				failed = map[window.Key]bool{}
			}
			failed[key] = true
		}
	}
}
