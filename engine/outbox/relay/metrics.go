package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
