package circuit

import "github.com/prometheus/client_golang/prometheus"

// metrics are one dependency's; all circuits of a process share the names and differ in the label.
type metrics struct {
	up      prometheus.Gauge
	outages prometheus.Counter
}

func newMetrics(name string) *metrics {
	labels := prometheus.Labels{"dependency": name}
	m := &metrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "dependency_up", Help: "1 while the server answers, 0 while it is down.", ConstLabels: labels,
		}),
		outages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dependency_outages_total", Help: "How often the server went down.", ConstLabels: labels,
		}),
	}
	m.up.Set(1)
	return m
}

func (m *metrics) register(r prometheus.Registerer) error {
	if err := r.Register(m.up); err != nil {
		return err
	}
	return r.Register(m.outages)
}

func (m *metrics) fell() {
	m.up.Set(0)
	m.outages.Inc()
}

func (m *metrics) rose() { m.up.Set(1) }
