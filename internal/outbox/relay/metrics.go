package relay

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of this process; docs/operations.md explains them. No label has a value of an event.
type metrics struct {
	leader, epoch                            prometheus.Gauge
	sessions, parkings, neglected, scheduled prometheus.Counter
	lostEvents, brokerLosses, resent         prometheus.Counter
	published, failures                      *prometheus.CounterVec
	seconds, batch                           prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	own := prometheus.NewRegistry()
	in := promauto.With(own)
	gauge := func(name, help string) prometheus.Gauge {
		return in.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return in.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return in.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		leader:    gauge("outbox_relay_leader", "1 while this relay leads."),
		epoch:     gauge("outbox_relay_epoch", "Epoch of the last leadership."),
		sessions:  counter("outbox_relay_sessions_ended_total", "Sessions ended by an error.").WithLabelValues(),
		parkings:  counter("outbox_relay_parkings_total", "Keys parked, or parked again.").WithLabelValues(),
		neglected: counter("outbox_relay_neglects_total", "Rounds of maintenance that failed.").WithLabelValues(),
		scheduled: counter("outbox_relay_scheduled_added_total", "Scheduled events that were added.").WithLabelValues(),
		published: counter("outbox_relay_published_total", "Events taken by the publisher, duplicates included.", "topic"),
		failures:  counter("outbox_relay_failures_total", "Events not taken by the publisher.", "topic", "class"),
		seconds: histogram("outbox_relay_publish_seconds", "Time to publish a page.",
			prometheus.ExponentialBuckets(0.0005, 2, 16)),
		batch: histogram("outbox_relay_batch_events", "Events in a page that was sent.",
			prometheus.ExponentialBuckets(1, 4, 9)),
	}
	m.lostEvents = counter("outbox_lost_events_total", "Events on the log that the database had lost.").WithLabelValues()
	m.brokerLosses = counter("outbox_broker_losses_total", "Partitions of the log that lost records.").WithLabelValues()
	m.resent = counter("outbox_resent_events_total", "Events sent again: an end was not sure.").WithLabelValues()
	if registry == nil {
		return m, nil
	}
	return m, registry.Register(own)
}
