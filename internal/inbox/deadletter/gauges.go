package deadletter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/audit"
)

var (
	waitingDesc = prometheus.NewDesc("dead_letters_waiting",
		"Dead letters that wait: dead (given up) or parked (behind one of their key); counted up to 100000.",
		[]string{"consumer", "state"}, nil)
	oldestDesc = prometheus.NewDesc("dead_letters_oldest_seconds",
		"Time since the oldest dead letter that waits first failed; 0 if none does.", []string{"consumer", "state"}, nil)
)

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

// Measure returns the gauges dead_letters_waiting and dead_letters_oldest_seconds, from the table.
func Measure(ctx context.Context, db audit.Querier, consumers []string) ([]prometheus.Metric, error) {
	rows, _ := db.Query(ctx, countWaiting, consumers)
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
