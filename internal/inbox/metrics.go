package inbox

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	messages *prometheus.CounterVec
	retries  *prometheus.CounterVec
	seconds  prometheus.Observer
	letters  *prometheus.CounterVec
	batches  prometheus.Observer
	splits   prometheus.Counter
	replays  *prometheus.CounterVec
	rewinds  *prometheus.CounterVec
}

// Consumers of one process share the metrics.
func newMetrics(registerer prometheus.Registerer, consumer string) *metrics {
	of := prometheus.Labels{"consumer": consumer}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		opts := prometheus.CounterOpts{Name: name, Help: help}
		return register(registerer, prometheus.NewCounterVec(opts, append(labels, "consumer"))).MustCurryWith(of)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
		return register(registerer, prometheus.NewHistogramVec(opts, []string{"consumer"})).With(of)
	}
	return &metrics{
		messages: counter("inbox_messages_total", "Deliveries by what became of them.", "outcome"),
		retries: counter("inbox_failed_attempts_total", "Attempts that were rolled back, by the class of their error.",
			"class"),
		seconds: histogram("inbox_handle_seconds", "From taking a delivery to its final outcome, retries included.",
			prometheus.ExponentialBuckets(0.0005, 2, 16)),
		letters: counter("inbox_dead_letters_total", "Records given up, by stable reason.", "code"),
		batches: histogram("inbox_batch_size", "Events per committed transaction.",
			prometheus.ExponentialBuckets(1, 2, 11)),
		splits: counter("inbox_split_batches_total",
			"Batches that were rolled back because of one of their events and run in halves.").WithLabelValues(),
		rewinds: counter("inbox_rewinds_total",
			"Topic-partitions that were read again because of a database or a broker that went back.", "cause"),
		replays: counter("inbox_replays_total", "Dead letters that were replayed or resumed, by what became of them.",
			"outcome"),
	}
}

func register[C prometheus.Collector](registerer prometheus.Registerer, collector C) C {
	if registerer == nil {
		return collector
	}
	var taken prometheus.AlreadyRegisteredError
	if err := registerer.Register(collector); errors.As(err, &taken) {
		return taken.ExistingCollector.(C)
	}
	return collector
}
