package service

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

// Shared asks a server one question at a time for all callers. With an Age of 0 it reuses no answer.
type Shared[T any] struct {
	Ask     func(ctx context.Context) (T, error)
	Timeout time.Duration
	Age     time.Duration // maximum age of a reused answer; an error is not reused

	asking singleflight.Group
	last   T // without an error; once runs once at a time
	lastAt time.Time
}

// Get waits up to the timeout; a late answer is the next caller's. The value comes with an error, too.
func (s *Shared[T]) Get() (value T, err error) {
	select {
	case asked := <-s.asking.DoChan("", s.once):
		return asked.Val.(T), asked.Err
	case <-time.After(s.Timeout):
		return value, s.late()
	}
}

func (s *Shared[T]) late() error { return fmt.Errorf("no answer within %s", s.Timeout) }

func (s *Shared[T]) once() (any, error) {
	if time.Since(s.lastAt) < s.Age {
		return s.last, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.Timeout, s.late())
	defer cancel()
	var value T
	err := runProtected(ctx, func(ctx context.Context) (err error) {
		value, err = s.Ask(ctx)
		return err
	})
	if err == nil {
		s.last, s.lastAt = value, time.Now()
	}
	return value, err
}

const (
	measureTimeout = 2 * time.Second
	measureAge     = time.Second
)

// Measure adds gauges that /metrics reads, for at most 2 s. With an error measure returns those that it knows, and
// metrics_source_up{source=name} is 0.
func (a *Admin) Measure(name string, measure func(ctx context.Context) ([]prometheus.Metric, error)) {
	up := prometheus.NewDesc("metrics_source_up",
		"1 when all gauges of this source are in the answer, 0 when its server did not give them in time.",
		nil, prometheus.Labels{"source": name})
	values := Shared[[]prometheus.Metric]{Ask: measure, Timeout: measureTimeout, Age: measureAge}
	a.registry.MustRegister(collector(func(out chan<- prometheus.Metric) {
		metrics, err := values.Get()
		for _, metric := range metrics {
			out <- metric
		}
		isUp := 1.0
		if err != nil {
			isUp = 0
		}
		out <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, isUp)
	}))
}

type collector func(out chan<- prometheus.Metric)

func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) { c(out) }
