package deadletter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/audit"
)

// Gauges are the dead letters that wait, by consumer and state: dead (given up) or parked (behind one of their key):
//
//	dead_letters_waiting{consumer,state}          how many; counted up to 100,000
//	dead_letters_oldest_seconds{consumer,state}   since the oldest of them first failed; 0 if there is none
//
// They are read from the table, so a restart does not reset them and every instance has the same.
type Gauges struct {
	pool      audit.Querier
	consumers func() []string
}

// NewGauges reads the dead letters of the consumers that the function names, when it is asked.
func NewGauges(pool audit.Querier, consumers func() []string) *Gauges {
	return &Gauges{pool, consumers}
}

var (
	waitingDesc = prometheus.NewDesc("dead_letters_waiting",
		"Dead letters that wait: dead (given up) or parked (behind one of their key); counted up to 100000.",
		[]string{"consumer", "state"}, nil)
	oldestDesc = prometheus.NewDesc("dead_letters_oldest_seconds",
		"Time since the oldest dead letter that waits first failed; 0 if none does.", []string{"consumer", "state"}, nil)
)

// Describe lists the gauges.
func (*Gauges) Describe(out chan<- *prometheus.Desc) {
	out <- waitingDesc
	out <- oldestDesc
}

const countWaiting = `
select c.consumer, s.state, w.letters::float8,
    coalesce(greatest(extract(epoch from clock_timestamp() - w.oldest), 0), 0)::float8
from unnest($1::text[]) as c (consumer)
cross join unnest(array['dead', 'parked']) as s (state)
cross join lateral (
    select count(*) as letters, min(x.first_failed_at) as oldest
    from (
        select d.first_failed_at from public.dead_letter d
        where d.consumer = c.consumer and d.state = 'waiting' and (d.class = 'parked') = (s.state = 'parked')
        limit 100000
    ) x
) w`

// Measure reads the gauges.
func (g *Gauges) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	rows, _ := g.pool.Query(ctx, countWaiting, g.consumers())
	var metrics []prometheus.Metric
	var consumer, state string
	var letters, oldest float64
	_, err := pgx.ForEachRow(rows, []any{&consumer, &state, &letters, &oldest}, func() error {
		metrics = append(metrics,
			prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, letters, consumer, state),
			prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest, consumer, state))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	return metrics, nil
}
