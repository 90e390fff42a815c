package outbox

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics, all without values of events:
//
//	outbox_events_added_total{topic}            handed to callers' transactions, committed or not
//	outbox_relay_leader                         1 while this relay leads
//	outbox_relay_epoch                          of its last leadership
//	outbox_relay_sessions_ended_total           by an error; each costs a reconnect
//	outbox_relay_published_total{topic}         taken by the publisher, duplicates included
//	outbox_relay_failures_total{topic,class}    not taken: permanent, transient, behind (an earlier one of the key)
//	outbox_relay_publish_seconds                one page, all its topics
//	outbox_relay_batch_events                   events in a page that was sent
//	outbox_relay_lag_events                     positions given out from the first unpublished one on: an upper bound
//	outbox_relay_oldest_unpublished_seconds     business age of that one; 0 if there is none
//	outbox_relay_parkings_total                 keys parked, or parked again
//	outbox_relay_parked_keys                    keys of which records are held; lag and age do not count these records
//	outbox_relay_neglects_total                 looks at the partitions that failed, and drops that were put off
//	outbox_relay_position_room                  positions that existing partitions still have
//
// Lag, age, parked keys and room are known to the leader alone; a follower reports 0. While a window is open, as it is
// throughout an outage, nothing is polled: the lag then grows with each look at the partitions.
type relayMetrics struct {
	leader, epoch, parkedKeys, room prometheus.Gauge
	lag, oldest                     prometheus.GaugeFunc
	sessions, parkings, neglected   prometheus.Counter
	published, failures             *prometheus.CounterVec
	seconds, batch                  prometheus.Histogram

	head     atomic.Int64 // of the sequence, as last read
	first    atomic.Int64 // position of the first unpublished event; 0: none
	oldestAt atomic.Int64 // its time, in unix microseconds
}

func newAddedMetric() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "outbox_events_added_total",
		Help: "Events handed to callers' transactions, committed or not.",
	}, []string{"topic"})
}

func (o *Outbox) count(b *batch) {
	for _, k := range b.keys {
		o.added.WithLabelValues(k.topic).Add(float64(k.events))
	}
}

func newRelayMetrics() *relayMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_relay_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_relay_" + name, Help: help})
	}
	m := &relayMetrics{
		leader:     gauge("leader", "1 while this relay leads."),
		epoch:      gauge("epoch", "Epoch of the last leadership."),
		parkedKeys: gauge("parked_keys", "Keys of which records are held."),
		room:       gauge("position_room", "Positions that existing partitions still have."),
		sessions:   counter("sessions_ended_total", "Sessions ended by an error."),
		parkings:   counter("parkings_total", "Keys parked, or parked again."),
		neglected:  counter("neglects_total", "Looks at the partitions that failed."),
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
	m.lag = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "outbox_relay_lag_events", Help: "Positions given out from the first unpublished one on; an upper bound.",
	}, m.lagEvents)
	m.oldest = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "outbox_relay_oldest_unpublished_seconds", Help: "Age of the first unpublished event.",
	}, m.oldestSeconds)
	return m
}

func (m *relayMetrics) lagEvents() float64 {
	first := m.first.Load()
	if first == 0 {
		return 0
	}
	return float64(max(1, m.head.Load()-first+1))
}

func (m *relayMetrics) oldestSeconds() float64 {
	if m.first.Load() == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMicro(m.oldestAt.Load())).Seconds())
}

func (m *relayMetrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{
		m.leader, m.epoch, m.parkedKeys, m.lag, m.room, m.oldest, m.sessions, m.parkings, m.neglected, m.published,
		m.failures, m.seconds, m.batch,
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *relayMetrics) lead(epoch int64) {
	m.leader.Set(1)
	m.epoch.Set(float64(epoch))
}

// follow resets what only a leader knows.
func (m *relayMetrics) follow() {
	for _, g := range []prometheus.Gauge{m.leader, m.parkedKeys, m.room} {
		g.Set(0)
	}
	m.caughtUp()
}

func (m *relayMetrics) caughtUp() { m.first.Store(0) }

func (m *relayMetrics) pending(first *record) {
	m.oldestAt.Store(first.event.Time.UnixMicro())
	m.first.Store(first.position)
}

// observe counts what became of a flight.
func (m *relayMetrics) observe(f *flight, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	m.batch.Observe(float64(len(f.records)))
	taken, topic := 0, ""
	for i, err := range f.results {
		if t := f.records[i].topic; t != topic { // rows of a topic come in runs
			m.addPublished(topic, taken)
			taken, topic = 0, t
		}
		if err == nil {
			taken++
			continue
		}
		m.failures.WithLabelValues(topic, classOf(err)).Inc()
	}
	m.addPublished(topic, taken)
}

func (m *relayMetrics) addPublished(topic string, n int) {
	if n > 0 {
		m.published.WithLabelValues(topic).Add(float64(n))
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
