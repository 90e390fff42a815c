package lease

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what this process does and, when it is read, the rows that are not done.
type metrics struct {
	leases    *Leases
	attempts  *prometheus.CounterVec
	takeovers prometheus.Counter
	stale     prometheus.Counter
	rows, age *prometheus.Desc
}

func newMetrics(registerer prometheus.Registerer, l *Leases) *metrics {
	labels := prometheus.Labels{"handler": l.handler}
	m := &metrics{
		leases: l,
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lease_attempts_total", Help: "Attempts by how they ended.", ConstLabels: labels,
		}, []string{"result"}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lease_takeovers_total", Help: "Leases of others that had ended, claimed or swept by this process.",
			ConstLabels: labels,
		}),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lease_stale_rejects_total", Help: "Steps of this process that changed nothing because its lease was lost.",
			ConstLabels: labels,
		}),
		rows: prometheus.NewDesc("lease_rows", "Rows that are not done, by state.", []string{"state"}, labels),
		age: prometheus.NewDesc("lease_oldest_pending_seconds", "Age of the oldest row that is neither done nor given up.",
			nil, labels),
	}
	if registerer != nil {
		registerer.MustRegister(m.attempts, m.takeovers, m.stale, m)
	}
	return m
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(out chan<- *prometheus.Desc) { out <- m.rows; out <- m.age }

// countTimeout is short: whoever reads metrics while the database is down wants the others.
const countTimeout = 2 * time.Second

const countRows = `
select states.state, count(l.state),
       coalesce(extract(epoch from clock_timestamp() - min(l.added_at)), 0)::float8
from unnest(array['pending', 'claimed', 'submitting', 'failed', 'uncertain']) as states (state)
left join lease l on l.handler = $1 and l.state = states.state and l.state <> 'done'
group by states.state`

// Collect implements [prometheus.Collector]. It leaves the rows out when the database does not answer.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	rows, err := m.leases.pool.Query(ctx, countRows, m.leases.handler)
	if err != nil {
		return
	}
	counts, oldest := map[State]int64{}, 0.0
	var state State
	var n int64
	var age float64
	if _, err := pgx.ForEachRow(rows, []any{&state, &n, &age}, func() error {
		counts[state] = n
		if state == Pending || state == Claimed || state == Submitting {
			oldest = max(oldest, age)
		}
		return nil
	}); err != nil {
		return
	}
	for state, n := range counts {
		out <- prometheus.MustNewConstMetric(m.rows, prometheus.GaugeValue, float64(n), string(state))
	}
	out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, oldest)
}
