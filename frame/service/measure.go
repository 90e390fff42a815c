package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

// A Source is gauges that a server is asked for while /metrics is read, so that they are current and the same on every
// instance.
type Source interface {
	Describe(out chan<- *prometheus.Desc)
	// Measure asks for the present values. With an error it returns those that it knows all the same. It must return
	// soon after ctx has ended.
	Measure(ctx context.Context) ([]prometheus.Metric, error)
}

const (
	measureTimeout = 2 * time.Second
	// measureAge is how old an answer may be: two readers at the same time ask the server once.
	measureAge = time.Second
)

// Measure adds a source under a name. /metrics waits 2 s for it at most. When the server has not answered by then,
// metrics_source_up{source=name} is 0 and the gauges that are not known are missing: none is ever shown as it last was.
func (a *Admin) Measure(name string, source Source) error {
	return a.registry.Register(&measured{
		source: source,
		up: prometheus.NewDesc("metrics_source_up",
			"1 when all gauges of this source are in the answer, 0 when its server did not give them in time.",
			nil, prometheus.Labels{"source": name}),
	})
}

// measured is a source behind a cache. At most one measurement of it is under way, however many read the metrics.
type measured struct {
	source Source
	up     *prometheus.Desc
	asking singleflight.Group
	last   answer // of measure, which runs once at a time
}

// answer is what a measurement gave.
type answer struct {
	at      time.Time
	metrics []prometheus.Metric
	err     error
}

// Describe implements [prometheus.Collector].
func (m *measured) Describe(out chan<- *prometheus.Desc) {
	out <- m.up
	m.source.Describe(out)
}

// Collect implements [prometheus.Collector].
func (m *measured) Collect(out chan<- prometheus.Metric) {
	metrics, up := m.read()
	for _, metric := range metrics {
		out <- metric
	}
	value := 0.0
	if up {
		value = 1
	}
	out <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, value)
}

// read returns what is known, after a measurement if that is too old. It reports false when it is not known in time.
func (m *measured) read() ([]prometheus.Metric, bool) {
	timer := time.NewTimer(measureTimeout)
	defer timer.Stop()
	select {
	case asked := <-m.asking.DoChan("", m.measure):
		given := asked.Val.(answer)
		return given.metrics, given.err == nil
	case <-timer.C:
		return nil, false
	}
}

// measure outlives the reader that started it when the source is late; the next reader waits for the same answer.
func (m *measured) measure() (any, error) {
	if time.Since(m.last.at) < measureAge {
		return m.last, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), measureTimeout)
	defer cancel()
	var given answer
	given.err = protect(ctx, func(ctx context.Context) (err error) {
		given.metrics, err = m.source.Measure(ctx)
		return err
	})
	given.at = time.Now()
	m.last = given
	return given, nil
}
