// Package operate is what operators read of an outbox and do about it: its status and newest entries, keys that were
// parked, events to be published again, topics with another number of partitions. Nothing here needs or disturbs a
// relay.
package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/outbox/window"
)

// Status is how far an outbox is published and who publishes it, at one moment.
type Status struct {
	Leader     string    `json:"leader"`      // which relay led last; empty: none ever did
	Epoch      int64     `json:"epoch"`       // raised by each take-over
	LeaseUntil time.Time `json:"lease_until"` // on the database's clock
	Leading    bool      `json:"leading"`     // the lease has not run out

	// Head is the highest position given out, also to transactions that rolled back.
	Head int64 `json:"head"`
	// Waiting counts committed events that are not published and not held, up to MaxWaiting.
	Waiting       int64         `json:"waiting"`
	OldestWaiting *time.Time    `json:"oldest_waiting,omitempty"` // business time of the first of them; nil: none waits
	WaitingFor    time.Duration `json:"-"`                        // since then, by the database's clock
	Lag           int64         `json:"-"`                        // positions given out from the first of them on
	ParkedKeys    int64         `json:"-"`
	HeldEvents    int64         `json:"held"`      // of parked keys
	Scheduled     int64         `json:"scheduled"` // events that are due later, counted up to MaxScheduled
	// OverdueSeconds is how long the oldest of them that is due has not been added.
	OverdueSeconds float64 `json:"overdue_seconds"`
	Restoring      bool    `json:"restoring"` // what a restore left is still being published
	Room           int64   `json:"-"`         // positions that existing partitions still have
}

// MaxScheduled is where [ReadStatus] stops counting scheduled events.
const MaxScheduled = 100_000

// MaxWaiting is where [ReadStatus] stops counting: an outage of an hour must not make its answer slow.
const MaxWaiting = 10_000

const statusSQL = `
select c.leader, c.epoch, c.lease_until, c.lease_until > clock_timestamp(), c.done::text, c.mark_x, c.mark_h,
    pg_current_snapshot()::text, s.head,
    (select coalesce(max(upper), 1) from (` + window.Partitions + `) p) - 1 - s.head,
    (select count(*) from public.outbox_parked), (select count(*) from public.outbox_held),
    c.old_done is not null or c.sysid is distinct from (select system_identifier from pg_control_system()),
    (select count(*) from (select from public.outbox_scheduled limit $2) x),
    coalesce((select greatest(extract(epoch from clock_timestamp() - min(due_at)), 0) from public.outbox_scheduled),
        0)::float8
from public.outbox_cursor c
cross join (select coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0) as head) s
where c.name = $1`

const waitingSQL = `
select count(*), case count(*) when 0 then 0 else greatest(1, $4 - min(position) + 1) end,
    (array_agg(occurred_at order by position))[1],
    coalesce(greatest(clock_timestamp() - (array_agg(occurred_at order by position))[1], '0'), '0')
from (
    select o.occurred_at, o.position
    from public.outbox o
    cross join public.outbox_cursor c
    where c.name = $1 and o.position > $2 and not ` + window.IsPublished + `
    order by o.position
    limit $3
) x`

// ReadStatus reads the status without disturbing the relay. The two statements behind it see two moments: an event
// that is published in between is counted in neither or both.
func ReadStatus(ctx context.Context, db window.DB) (Status, error) {
	return readStatus(ctx, db, MaxWaiting)
}

// readStatus counts the waiting events up to a limit.
func readStatus(ctx context.Context, db window.DB, limit int) (Status, error) {
	var (
		s         Status
		done, now string
		xids      []uint64
		heads     []int64
		start     int64
	)
	err := db.QueryRow(ctx, statusSQL, window.CursorName, MaxScheduled).Scan(&s.Leader, &s.Epoch, &s.LeaseUntil,
		&s.Leading, &done, &xids, &heads, &now, &s.Head, &s.Room, &s.ParkedKeys, &s.HeldEvents, &s.Restoring,
		&s.Scheduled, &s.OverdueSeconds)
	if err == nil && !s.Restoring { // else its transaction ids may be another cluster's: count from the beginning
		start, err = window.ScanStart(done, now, xids, heads)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read outbox status: %w", err)
	}
	err = db.QueryRow(ctx, waitingSQL, window.CursorName, start, limit, s.Head).Scan(
		&s.Waiting, &s.Lag, &s.OldestWaiting, &s.WaitingFor)
	if err != nil {
		return Status{}, fmt.Errorf("count waiting events: %w", err)
	}
	return s, nil
}

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
type Gauges struct{ db window.DB }

// NewGauges reads from the database when it is asked.
func NewGauges(db window.DB) *Gauges { return &Gauges{db} }

// gauges are in the order in which Measure gives their values.
var gauges = []*prometheus.Desc{
	desc("relay_has_leader", "1 while an instance leads, 0 when none does."),
	desc("relay_lag_events", "Positions given out from the first unpublished one on; an upper bound."),
	desc("relay_oldest_unpublished_seconds", "Age of the first unpublished event."),
	desc("relay_parked_keys", "Keys of which records are held."),
	desc("relay_held_events", "Events of parked keys."),
	desc("relay_position_room", "Positions that existing partitions still have; at 0 nothing can be added."),
	desc("scheduled_events", "Events that are due later."),
	desc("scheduled_overdue_seconds", "How long the oldest due one of them has not been added."),
}

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("outbox_"+name, help, nil, nil)
}

// Describe lists the gauges.
func (*Gauges) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range gauges {
		out <- desc
	}
}

// Measure reads the gauges at the cost of a few rows, however much waits.
func (g *Gauges) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	s, err := readStatus(ctx, g.db, 1)
	if err != nil {
		return nil, err
	}
	led := 0.0
	if s.Leading {
		led = 1
	}
	metrics := make([]prometheus.Metric, len(gauges))
	for i, value := range []float64{
		led, float64(s.Lag), s.WaitingFor.Seconds(), float64(s.ParkedKeys), float64(s.HeldEvents), float64(s.Room),
		float64(s.Scheduled), s.OverdueSeconds,
	} {
		metrics[i] = prometheus.MustNewConstMetric(gauges[i], prometheus.GaugeValue, value)
	}
	return metrics, nil
}

const heldSQL = `
select topic, reason, clock_timestamp() - parked_at
from public.outbox_parked
where not permanent and parked_at <= clock_timestamp() - $1 * interval '1 microsecond'
order by parked_at limit 1`

// CheckHeld is for a readiness check, on any instance. It fails if the events of a key have been held for longer than a
// time although the broker does not refuse them for good: their topic is gone, a right to it is missing, or one of its
// partitions has no leader, while others are published. A key that waits for an operator's release does not count.
func CheckHeld(ctx context.Context, db window.DB, limit time.Duration) error {
	var topic, reason string
	var since time.Duration
	err := db.QueryRow(ctx, heldSQL, limit.Microseconds()).Scan(&topic, &reason, &since)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read held events: %w", err)
	}
	return fmt.Errorf("events for %s have been held for %s: %s", topic, since.Round(time.Second), reason)
}
