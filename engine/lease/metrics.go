package lease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what this process does.
type metrics struct {
	attempts  *prometheus.CounterVec
	takeovers prometheus.Counter
	stale     prometheus.Counter
	purged    prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, handler string) *metrics {
	labels := prometheus.Labels{"handler": handler}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lease_attempts_total", Help: "Attempts by how they ended.", ConstLabels: labels,
		}, []string{"result"}),
		takeovers: counter("lease_takeovers_total", "Leases of others that had ended, claimed or swept by this process."),
		stale: counter("lease_stale_rejects_total",
			"Steps of this process that changed nothing because its lease was lost."),
		purged: counter("lease_purged_total", "Rows that this process removed because they were done long ago."),
	}
	if registerer != nil {
		registerer.MustRegister(m.attempts, m.takeovers, m.stale, m.purged)
	}
	return m
}

// Gauges are the rows of one handler that are not done, by state. They are read from the table, so every instance says
// the same:
//
//	lease_rows{handler,state}             how many
//	lease_oldest_seconds{handler,state}   since the oldest of them was added; 0 if there is none
type Gauges struct {
	leases       *Leases
	rows, oldest *prometheus.Desc
}

// Gauges reads from the database when it is asked.
func (l *Leases) Gauges() *Gauges {
	labels := prometheus.Labels{"handler": l.handler}
	return &Gauges{
		leases: l,
		rows:   prometheus.NewDesc("lease_rows", "Rows that are not done, by state.", []string{"state"}, labels),
		oldest: prometheus.NewDesc("lease_oldest_seconds",
			"Time since the oldest row of the state was added; 0 if there is none.", []string{"state"}, labels),
	}
}

// Describe lists the gauges.
func (g *Gauges) Describe(out chan<- *prometheus.Desc) { out <- g.rows; out <- g.oldest }

const countRows = `
select states.state, count(l.state)::float8,
       coalesce(greatest(extract(epoch from clock_timestamp() - min(l.added_at)), 0), 0)::float8
from unnest(array['pending', 'claimed', 'submitting', 'failed', 'uncertain']) as states (state)
left join lease l on l.handler = $1 and l.state = states.state and l.state <> 'done'
group by states.state`

// Measure reads the gauges.
func (g *Gauges) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	rows, _ := g.leases.pool.Query(ctx, countRows, g.leases.handler)
	var metrics []prometheus.Metric
	var state string
	var n, age float64
	_, err := pgx.ForEachRow(rows, []any{&state, &n, &age}, func() error {
		metrics = append(metrics, prometheus.MustNewConstMetric(g.rows, prometheus.GaugeValue, n, state),
			prometheus.MustNewConstMetric(g.oldest, prometheus.GaugeValue, age, state))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count leases: %w", err)
	}
	return metrics, nil
}
