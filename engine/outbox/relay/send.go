package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

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

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_relay_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_relay_" + name, Help: help})
	}
	return &metrics{
		leader:    gauge("leader", "1 while this relay leads."),
		epoch:     gauge("epoch", "Epoch of the last leadership."),
		sessions:  counter("sessions_ended_total", "Sessions ended by an error."),
		parkings:  counter("parkings_total", "Keys parked, or parked again."),
		neglected: counter("neglects_total", "Looks at the partitions that failed."),
		scheduled: counter("scheduled_added_total", "Scheduled events that were due and were added."),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "outbox_relay_published_total", Help: "Events taken by the publisher, duplicates included.",
		}, []string{"topic"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "outbox_relay_failures_total", Help: "Events not taken by the publisher.",
		}, []string{"topic", "class"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "outbox_relay_publish_seconds", Help: "Time to publish a page.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "outbox_relay_batch_events", Help: "Events in a page that was sent.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 9),
		}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{
		m.leader, m.epoch, m.sessions, m.parkings, m.neglected, m.scheduled, m.published, m.failures, m.seconds, m.batch,
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// observeFlight counts what became of a flight's calls.
func (m *metrics) observeFlight(f *flight, calls []*call, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	m.batch.Observe(float64(len(f.records)))
	for _, c := range calls {
		taken := 0
		for _, i := range c.index {
			if err := f.results[i]; err != nil {
				m.failures.WithLabelValues(c.topic, classOf(err)).Inc()
			} else {
				taken++
			}
		}
		if taken > 0 {
			m.published.WithLabelValues(c.topic).Add(float64(taken))
		}
	}
}

func classOf(err error) string {
	switch {
	case isPermanent(err):
		return "permanent"
	case err == errBehind: //nolint:errorlint // set by this package, never wrapped
		return "behind"
	}
	return "transient"
}
