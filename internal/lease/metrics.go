package lease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	attempts                 *prometheus.CounterVec
	takeovers, stale, purged prometheus.Counter
	rows, oldest             *prometheus.Desc
}

func newMetrics(registerer prometheus.Registerer, handler string) *metrics {
	labels := prometheus.Labels{"handler": handler}
	factory := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"state"}, labels)
	}
	return &metrics{
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "lease_attempts_total", Help: "Attempts by result.", ConstLabels: labels,
		}, []string{"result"}),
		takeovers: counter("lease_takeovers_total", "Leases of vanished claimants that this process ended."),
		stale:     counter("lease_stale_rejects_total", "Steps that changed no row because this process had lost the lease."),
		purged:    counter("lease_purged_total", "Rows that this process removed after their retention."),
		rows:      gauge("lease_rows", "Rows that are not done, by state."),
		oldest:    gauge("lease_oldest_seconds", "Time since the oldest row of the state was added; 0 without one."),
	}
}

const countRows = `
select states.state, count(l.state)::float8,
       coalesce(greatest(extract(epoch from clock_timestamp() - min(l.added_at)), 0), 0)::float8
from unnest(array['pending', 'claimed', 'submitting', 'failed', 'skipped', 'uncertain']) as states (state)
left join lease l on l.handler = $1 and l.state = states.state and l.state <> 'done'
group by states.state`

// Measure returns the gauges lease_rows and lease_oldest_seconds, from the table.
func (r *Runner) Measure(ctx context.Context) (gauges []prometheus.Metric, err error) {
	rows, _ := r.cfg.Pool.Query(ctx, countRows, r.cfg.Handler)
	var state string
	var n, age float64
	_, err = pgx.ForEachRow(rows, []any{&state, &n, &age}, func() error {
		gauges = append(gauges, prometheus.MustNewConstMetric(r.metrics.rows, prometheus.GaugeValue, n, state),
			prometheus.MustNewConstMetric(r.metrics.oldest, prometheus.GaugeValue, age, state))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count leases: %w", err)
	}
	return gauges, nil
}
