package retention

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	bytes, rows, partitions, oldest, future, parked, refused prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	var errs []error
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		if registerer != nil {
			errs = append(errs, registerer.Register(g))
		}
		return g
	}
	m := &metrics{
		bytes:      gauge("inbox_table_bytes", "Size of the inbox with its indexes."),
		rows:       gauge("inbox_rows", "Rows of the inbox, as the last analyze counted them."),
		partitions: gauge("inbox_partitions", "Partitions of the inbox."),
		oldest:     gauge("inbox_oldest_partition_seconds", "Time since the end of the oldest partition."),
		future:     gauge("inbox_future_rows", "Rows of events from beyond the days that have a partition, 10000 at most."),
		parked:     gauge("inbox_parked_records", "Records that wait behind another of their key, 10000 at most."),
		refused:    gauge("inbox_janitor_refused", "1 while nothing is forgotten because it might come again."),
	}
	return m, errors.Join(errs...)
}

const measureInbox = `
select sum(pg_total_relation_size(p.relid))::float8, sum(greatest(c.reltuples, 0))::float8,
    (count(*) filter (where p.isleaf))::float8,
    extract(epoch from clock_timestamp() - min((regexp_match(pg_get_expr(c.relpartbound, c.oid),
        'TO \(''([^'']+)''\)'))[1]::timestamptz) filter (where p.relid <> 'public.inbox_foreign'::regclass))::float8,
    (select count(*)::float8 from (select from public.inbox_future limit 10000) f),
    (select count(*)::float8 from (
        select from public.dead_letter where state = 'waiting' and class = 'parked' limit 10000) d),
    (select refused::int::float8 from public.inbox_janitor)
from pg_partition_tree('public.inbox') p join pg_class c on c.oid = p.relid`

// measure reads the gauges. Every instance does, so that each one's metrics are whole, and none keeps saying what was
// true when it led a round itself.
func (j *Janitor) measure(ctx context.Context) {
	var bytes, rows, oldest *float64
	var partitions, future, parked, refused float64
	err := j.cfg.Pool.QueryRow(ctx, measureInbox).
		Scan(&bytes, &rows, &partitions, &oldest, &future, &parked, &refused)
	if err != nil {
		if ctx.Err() == nil {
			j.log.WarnContext(ctx, "inbox not measured", "error", err)
		}
		return
	}
	set := func(g prometheus.Gauge, v *float64) {
		if v != nil {
			g.Set(*v)
		}
	}
	set(j.metrics.bytes, bytes)
	set(j.metrics.rows, rows)
	set(j.metrics.oldest, oldest)
	j.metrics.partitions.Set(partitions)
	j.metrics.future.Set(future)
	j.metrics.parked.Set(parked)
	j.metrics.refused.Set(refused)
}
