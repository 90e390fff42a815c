package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
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
	if f == nil {
		return nil
	}
	select {
	case <-f.landed:
		return nil
	default:
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
	publish := func(c *call) {
		end := s.spans.Send(c.topic, c.events) // part: observability
		c.publish(ctx, s.publisher, f.results)
		end(c.firstError(f.results)) // part: observability
	}
	var others sync.WaitGroup
	for _, c := range calls[1:] {
		others.Go(func() { publish(c) })
	}
	publish(calls[0])
	others.Wait()
	f.holdBack()
	s.metrics.observeFlight(f, calls, time.Since(began))
	fault.Here("relay.publish.after")
}

// holdBack marks each record behind a key's first failure as failed too, also an acknowledged one.
func (f *flight) holdBack() {
	failed := map[window.Key]bool{}
	for i, err := range f.results {
		switch key := f.records[i].Key(); {
		case failed[key]:
			f.results[i] = errBehind
		case err != nil:
			failed[key] = true
		}
	}
}

// call is one call of Publish.
type call struct {
	topic  string
	events []*cloudevent.Event
	index  []int // of the events in the flight
}

// callsOf groups the records by topic.
func callsOf(records []window.Record) []*call {
	var calls []*call
	for i := range records {
		r := &records[i]
		at := slices.IndexFunc(calls, func(c *call) bool { return c.topic == r.Event.Topic })
		if at < 0 {
			at = len(calls)
			size := len(records) - i
			calls = append(calls, &call{
				topic: r.Event.Topic, events: make([]*cloudevent.Event, 0, size), index: make([]int, 0, size),
			})
		}
		calls[at].events = append(calls[at].events, &r.Event)
		calls[at].index = append(calls[at].index, i)
	}
	return calls
}

// publish makes the call and writes the results of its own records.
func (c *call) publish(ctx context.Context, p message.Publisher, results []error) {
	err := publishEvents(ctx, p, c.topic, c.events)
	if err == nil {
		return
	}
	var partial FailedIndexes
	switch {
	case errors.As(err, &partial):
		for i, why := range partial.FailedIndexes() {
			if i >= 0 && i < len(c.index) {
				results[c.index[i]] = cmp.Or(why, err)
			}
		}
	case isPermanent(err) && len(c.events) > 1:
		c.publishOneByOne(ctx, p, results)
	default:
		for _, i := range c.index {
			results[i] = err
		}
	}
}

// part: observability, begin

// firstError is the first of the results of its own records.
func (c *call) firstError(results []error) error {
	for _, i := range c.index {
		if results[i] != nil {
			return results[i]
		}
	}
	return nil
}

// part: observability, end

// publishOneByOne finds the events that the publisher refuses. What an earlier call of it has taken is taken again.
func (c *call) publishOneByOne(ctx context.Context, p message.Publisher, results []error) {
	failed := map[string]bool{}
	for i, e := range c.events {
		if failed[e.Key] {
			results[c.index[i]] = errBehind
			continue
		}
		if err := publishEvents(ctx, p, c.topic, []*cloudevent.Event{e}); err != nil {
			results[c.index[i]] = err
			failed[e.Key] = true
		}
	}
}
