package kv

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	messages  *prometheus.CounterVec
	lookups   *prometheus.CounterVec
	seconds   *prometheus.CounterVec
	errors    *prometheus.CounterVec
	evictions prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	return &metrics{
		messages: counter("inbox_kv_messages_total", "Deliveries by what became of them.", "consumer", "outcome"),
		lookups: counter("inbox_kv_lookups_total",
			"Ids by where they were found: cache, store, or nowhere, which is new.", "consumer", "found"),
		seconds: counter("inbox_kv_second_effects_possible_total",
			"Events whose effect may have happened twice, by why.", "consumer", "cause"),
		errors: counter("inbox_kv_store_errors_total", "Questions that the store did not answer.", "consumer", "question"),
		evictions: counter("inbox_kv_cache_evictions_total", "Ids that made room for newer ones in the cache.").
			WithLabelValues(),
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
