package service

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

// shared is something that a server is asked, once at a time however many want to know: a readiness check, a source of
// gauges, why the service waits. Each of those who ask waits no longer than the timeout. A question that is late goes
// on without them, is not asked a second time meanwhile, and its answer is the next one's.
type shared[T any] struct {
	ask     func(ctx context.Context) (T, error)
	timeout time.Duration
	age     time.Duration // up to which an answer is as good as a new one

	asking singleflight.Group
	last   answer[T] // of once, which runs once at a time
}

type answer[T any] struct {
	value T
	err   error
	at    time.Time
}

// get returns an answer, and with an error of ask what it gave all the same.
func (s *shared[T]) get() (value T, err error) {
	select {
	case asked := <-s.asking.DoChan("", s.once):
		given := asked.Val.(answer[T])
		return given.value, given.err
	case <-time.After(s.timeout):
		return value, s.late()
	}
}

func (s *shared[T]) late() error { return fmt.Errorf("no answer within %s", s.timeout) }

func (s *shared[T]) once() (any, error) {
	if time.Since(s.last.at) < s.age {
		return s.last, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.timeout, s.late())
	defer cancel()
	var given answer[T]
	given.err = protect(ctx, func(ctx context.Context) (err error) {
		given.value, err = s.ask(ctx)
		return err
	})
	given.at = time.Now()
	s.last = given
	return given, nil
}

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
		values: shared[[]prometheus.Metric]{ask: source.Measure, timeout: measureTimeout, age: measureAge},
		up: prometheus.NewDesc("metrics_source_up",
			"1 when all gauges of this source are in the answer, 0 when its server did not give them in time.",
			nil, prometheus.Labels{"source": name}),
	})
}

// measured is a source as Prometheus reads it.
type measured struct {
	source Source
	values shared[[]prometheus.Metric]
	up     *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (m *measured) Describe(out chan<- *prometheus.Desc) {
	out <- m.up
	m.source.Describe(out)
}

// Collect implements [prometheus.Collector].
func (m *measured) Collect(out chan<- prometheus.Metric) {
	metrics, err := m.values.get()
	for _, metric := range metrics {
		out <- metric
	}
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, up)
}
