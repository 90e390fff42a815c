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
}

// newMetrics registers the metrics, or takes the ones that another consumer of this process registered before.
func newMetrics(registerer prometheus.Registerer, consumer string) *metrics {
	messages := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_messages_total",
		Help: "Deliveries by what became of them.",
	}, []string{"consumer", "outcome"}))
	retries := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_failed_attempts_total",
		Help: "Attempts that were rolled back, by the class of their error.",
	}, []string{"consumer", "class"}))
	seconds := Register(registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "inbox_handle_seconds",
		Help:    "From taking a delivery to its final outcome, retries included.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"consumer"}))
	letters := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_dead_letters_total",
		Help: "Records given up, by stable reason.",
	}, []string{"consumer", "code"}))
	batches := Register(registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "inbox_batch_size",
		Help:    "Events per committed transaction.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 11),
	}, []string{"consumer"}))
	splits := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_split_batches_total",
		Help: "Batches that were rolled back because of one of their events and run in parts.",
	}, []string{"consumer"}))
	labels := prometheus.Labels{"consumer": consumer}
	return &metrics{
		messages: messages.MustCurryWith(labels),
		retries:  retries.MustCurryWith(labels),
		seconds:  seconds.With(labels),
		letters:  letters.MustCurryWith(labels),
		batches:  batches.With(labels),
		splits:   splits.With(labels),
	}
}

// Register returns the collector that serves: the new one, or the one that already has its name.
func Register[C prometheus.Collector](registerer prometheus.Registerer, collector C) C {
	if registerer == nil {
		return collector
	}
	var taken prometheus.AlreadyRegisteredError
	if err := registerer.Register(collector); errors.As(err, &taken) {
		return taken.ExistingCollector.(C)
	}
	return collector
}
