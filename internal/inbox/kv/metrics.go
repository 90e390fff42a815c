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
	return &metrics{
		messages: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inbox_kv_messages_total",
			Help: "Deliveries by what became of them.",
		}, []string{"consumer", "outcome"})),
		lookups: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inbox_kv_lookups_total",
			Help: "Ids by where they were found: cache, store, or nowhere, which is new.",
		}, []string{"consumer", "found"})),
		seconds: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inbox_kv_second_effects_possible_total",
			Help: "Events whose effect may have happened twice, by why.",
		}, []string{"consumer", "cause"})),
		errors: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inbox_kv_store_errors_total",
			Help: "Questions that the store did not answer.",
		}, []string{"consumer", "question"})),
		evictions: register(registerer, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "inbox_kv_cache_evictions_total",
			Help: "Ids that made room for newer ones in the cache.",
		})),
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
