package operate

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are an outbox's figures from the database, the same on every instance, with or without a leader:
//
//	outbox_relay_has_leader                     1 while the lease of an instance runs, 0 when none leads
//	outbox_relay_lag_events                     positions given out from the first unpublished one on: an upper bound
//	outbox_relay_oldest_unpublished_seconds     business age of that one; 0 if there is none
//	outbox_relay_parked_keys                    keys of which records are held; lag and age do not count these records
//	outbox_relay_held_events                    these records
//	outbox_relay_position_room                  positions that existing partitions still have
//	outbox_scheduled_events                     events that are due later, counted up to [MaxScheduled]
//	outbox_scheduled_overdue_seconds            how long the oldest of them that is due has not been added
type Gauges struct{ db DB }

// NewGauges reads from the database when it is asked.
func NewGauges(db DB) *Gauges { return &Gauges{db} }

func relayDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("outbox_relay_"+name, help, nil, nil)
}

var (
	hasLeaderDesc = relayDesc("has_leader", "1 while an instance leads, 0 when none does.")
	lagDesc       = relayDesc("lag_events", "Positions given out from the first unpublished one on; an upper bound.")
	oldestDesc    = relayDesc("oldest_unpublished_seconds", "Age of the first unpublished event.")
	parkedDesc    = relayDesc("parked_keys", "Keys of which records are held.")
	heldDesc      = relayDesc("held_events", "Events of parked keys.")
	roomDesc      = relayDesc("position_room", "Positions that existing partitions still have; at 0 nothing can be added.")
	scheduledDesc = prometheus.NewDesc("outbox_scheduled_events", "Events that are due later.", nil, nil)
	overdueDesc   = prometheus.NewDesc("outbox_scheduled_overdue_seconds",
		"How long the oldest due one of them has not been added.", nil, nil)
)

// Describe lists the gauges.
func (*Gauges) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		hasLeaderDesc, lagDesc, oldestDesc, parkedDesc, heldDesc, roomDesc, scheduledDesc, overdueDesc,
	} {
		out <- desc
	}
}

const upperSQL = `
select coalesce(max((regexp_match(pg_get_expr(p.relpartbound, p.oid), 'TO \(''?(-?\d+)''?\)'))[1]::bigint), 1)
from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = 'public.outbox'::regclass`

// Measure reads the gauges at the cost of a few rows, however much waits.
func (g *Gauges) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	s, err := readStatus(ctx, g.db, 1)
	if err != nil {
		return nil, err
	}
	var upper int64
	if err := g.db.QueryRow(ctx, upperSQL).Scan(&upper); err != nil {
		return nil, fmt.Errorf("read end of partitions: %w", err)
	}
	lag, led := int64(0), 0.0
	if s.FirstWaiting > 0 {
		lag = max(1, s.Head-s.FirstWaiting+1)
	}
	if s.Leading {
		led = 1
	}
	values := []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{hasLeaderDesc, led},
		{lagDesc, float64(lag)},
		{oldestDesc, s.WaitingFor.Seconds()},
		{parkedDesc, float64(s.ParkedKeys)},
		{heldDesc, float64(s.HeldEvents)},
		{roomDesc, float64(upper - 1 - s.Head)},
		{scheduledDesc, float64(s.Scheduled)},
		{overdueDesc, s.OverdueSeconds},
	}
	metrics := make([]prometheus.Metric, len(values))
	for i, v := range values {
		metrics[i] = prometheus.MustNewConstMetric(v.desc, prometheus.GaugeValue, v.value)
	}
	return metrics, nil
}
