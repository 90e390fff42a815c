package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox/window"
)

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

// launch sends the records, in calls that are made all at once. Within a topic they keep their order.
func (r *Relay) launch(ctx context.Context, records []window.Record) *flight {
	if len(records) == 0 {
		return nil
	}
	f := &flight{
		records: records, results: make([]error, len(records)), lostAt: time.Now().Add(r.sendingTime),
		landed: make(chan struct{}),
	}
	r.flight = f
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.PublishTimeout, errPublishTimeout)
	go func() {
		defer close(f.landed)
		defer cancel()
		fault.Here("relay.publish.before")
		began := time.Now()
		calls := callsOf(records)
		var others sync.WaitGroup
		for _, c := range calls[1:] {
			others.Go(func() { r.send(ctx, c, f.results) })
		}
		r.send(ctx, calls[0], f.results)
		others.Wait()
		r.metrics.seconds.Observe(time.Since(began).Seconds())
		r.metrics.batch.Observe(float64(len(records)))
		fault.Here("relay.publish.after")
	}()
	return f
}

// wait prefers a flight that has landed, however late.
func (f *flight) wait(ctx context.Context, grace time.Duration) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.landed:
		return nil
	default:
	}
	select {
	case <-f.landed:
		return nil
	case <-time.After(grace):
		return errPublishTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// collect waits for a flight, remembers what was taken, and says how many of its records failed. A flight that is late
// may still land, with anything; until then nothing else may be sent, and the lease is left to run out.
func (r *Relay) collect(f *flight) (failed int, err error) {
	if f == nil {
		return 0, nil
	}
	if err := f.wait(context.Background(), time.Until(f.lostAt)); err != nil {
		return 0, err
	}
	for i, why := range f.results {
		switch {
		case why != nil:
			failed++
		case len(r.unrecorded) < maxBatchSize: // it does not grow without bound: that costs duplicates, nothing else
			r.unrecorded = append(r.unrecorded, receipt{f.records[i].Position, f.records[i].ID})
		}
	}
	return failed, nil
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

// send makes a call and marks each record behind a key's first failure as failed too, also an acknowledged one.
func (r *Relay) send(ctx context.Context, c *call, results []error) {
	end := r.cfg.Spans.Send(c.topic, c.events)
	c.publish(ctx, r.publisher, results)
	var first error
	taken, failed := 0, map[string]bool{}
	for i, e := range c.events {
		why, class := &results[c.index[i]], "transient"
		switch {
		case failed[e.Key]:
			*why, class = errBehind, "behind"
		case *why == nil:
			taken++
			continue
		case isPermanent(*why):
			class = "permanent"
		}
		failed[e.Key] = true
		first = cmp.Or(first, *why)
		r.metrics.failures.WithLabelValues(c.topic, class).Inc()
	}
	end(first)
	if taken > 0 {
		r.metrics.published.WithLabelValues(c.topic).Add(float64(taken))
	}
}

// publish makes the call and writes the results of its own records. Of a publisher that refuses the whole call it finds
// the events that it refuses, by calls of one event: what an earlier call has taken is taken again.
func (c *call) publish(ctx context.Context, p EventPublisher, results []error) {
	err := context.Cause(ctx)
	if err == nil {
		err = p.PublishEvents(ctx, c.topic, c.events...)
	}
	if err == nil {
		return
	}
	partial, is := errors.AsType[FailedIndexes](err)
	switch {
	case is:
		for i, why := range partial.FailedIndexes() {
			if i >= 0 && i < len(c.index) {
				results[c.index[i]] = cmp.Or(why, err)
			}
		}
	case isPermanent(err) && len(c.events) > 1:
		failed := map[string]bool{}
		for i, e := range c.events {
			if !failed[e.Key] { // else it is behind a failure
				one := &call{c.topic, c.events[i : i+1], c.index[i : i+1]}
				one.publish(ctx, p, results)
				failed[e.Key] = results[c.index[i]] != nil
			}
		}
	default:
		for _, i := range c.index {
			results[i] = err
		}
	}
}

// The metrics, all without values of events:
//
//	outbox_relay_leader                         1 while this relay leads
//	outbox_relay_epoch                          of its last leadership
//	outbox_relay_sessions_ended_total           by an error; each costs a reconnect
//	outbox_relay_published_total{topic}         taken by the publisher, duplicates included
//	outbox_relay_failures_total{topic,class}    not taken: permanent, transient, behind (an earlier one of the key)
//	outbox_relay_publish_seconds                one page, all its topics
//	outbox_relay_batch_events                   events in a page that was sent
//	outbox_relay_parkings_total                 keys parked, or parked again
//	outbox_relay_neglects_total                 maintenances of table partitions that failed, and drops put off
//	outbox_relay_scheduled_added_total          scheduled events that were due and were added
//
// They are of this process. What waits, and whether an instance leads, is the same for all of them: see operate.Gauges.
type metrics struct {
	leader, epoch                 prometheus.Gauge
	sessions, parkings, neglected prometheus.Counter
	scheduled                     prometheus.Counter
	published, failures           *prometheus.CounterVec
	seconds, batch                prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	in := promauto.With(registry)
	gauge := func(name, help string) prometheus.Gauge {
		return in.NewGauge(prometheus.GaugeOpts{Name: "outbox_relay_" + name, Help: help})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return in.NewCounterVec(prometheus.CounterOpts{Name: "outbox_relay_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return in.NewHistogram(prometheus.HistogramOpts{Name: "outbox_relay_" + name, Help: help, Buckets: buckets})
	}
	return &metrics{
		leader:    gauge("leader", "1 while this relay leads."),
		epoch:     gauge("epoch", "Epoch of the last leadership."),
		sessions:  counter("sessions_ended_total", "Sessions ended by an error.").WithLabelValues(),
		parkings:  counter("parkings_total", "Keys parked, or parked again.").WithLabelValues(),
		neglected: counter("neglects_total", "Looks at the partitions that failed.").WithLabelValues(),
		scheduled: counter("scheduled_added_total", "Scheduled events that were due and were added.").WithLabelValues(),
		published: counter("published_total", "Events taken by the publisher, duplicates included.", "topic"),
		failures:  counter("failures_total", "Events not taken by the publisher.", "topic", "class"),
		seconds:   histogram("publish_seconds", "Time to publish a page.", prometheus.ExponentialBuckets(0.0005, 2, 16)),
		batch:     histogram("batch_events", "Events in a page that was sent.", prometheus.ExponentialBuckets(1, 4, 9)),
	}
}
