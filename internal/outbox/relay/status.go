package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
)

// DB is a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Status is how far an outbox is published and which relay publishes it, at one moment.
type Status struct {
	Leader  string  `json:"leader"`  // the relay that led last; empty: none ever did
	Epoch   int64   `json:"epoch"`   // raised by each leadership
	Leading bool    `json:"leading"` // a session holds the leader's lock
	Paused  *Paused `json:"paused,omitempty"`

	Losses

	// Head is the highest position given out, also to transactions that rolled back.
	Head int64 `json:"head"`
	// Waiting counts committed events that are not published and not held, up to MaxWaiting.
	Waiting       int64         `json:"waiting"`
	OldestWaiting *time.Time    `json:"oldest_waiting,omitempty"` // business time; nil: none waits
	WaitingFor    time.Duration `json:"-"`                        // since then, by the database's clock
	Lag           int64         `json:"-"`                        // positions given out from the first of them on
	ParkedKeys    int64         `json:"parked_keys"`
	HeldEvents    int64         `json:"held"`
	Scheduled     int64         `json:"scheduled"` // due later, counted up to MaxScheduled
	// OverdueSeconds is the time since the oldest of them was due; 0: none is.
	OverdueSeconds float64 `json:"overdue_seconds"`
	Room           int64   `json:"-"` // left in existing table partitions
}

// [ReadStatus] stops counting here, so that its answer is not slow after an outage.
const (
	MaxScheduled = 100_000
	MaxWaiting   = 10_000
	MaxLost      = 100_000
)

// Every role may read pg_locks.
const leaderLock = `exists (select from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 0 and l.objid = $1
            and l.objsubid = 1 and l.granted)`

const statusSQL = `
select c.leader, c.epoch, ` + leaderLock + `,
    case when c.paused_at is not null
        then jsonb_build_object('by', c.paused_by, 'reason', c.paused_for, 'since', c.paused_at) end,
    c.done::text, c.mark_x, c.mark_h, pg_current_snapshot()::text, s.head,
    (select coalesce(max(upper), 1) from (` + Partitions + `) p) - 1 - s.head,
    (select count(*) from public.outbox_parked), (select count(*) from public.outbox_held),
    (select count(*) from (select from public.outbox_scheduled limit $2) x),
    coalesce((select greatest(extract(epoch from clock_timestamp() - min(due_at)), 0) from public.outbox_scheduled),
        0)::float8,
    ` + lossColumns + `
from public.outbox_cursor c
cross join (select coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0) as head) s
cross join lateral ` + countHealing + ` h`

const waitingSQL = `
select count(*), case count(*) when 0 then 0 else greatest(1, $3 - min(position) + 1) end,
    (array_agg(occurred_at order by position))[1],
    coalesce(greatest(clock_timestamp() - (array_agg(occurred_at order by position))[1], '0'), '0')
from (
    select o.occurred_at, o.position
    from public.outbox o
    cross join public.outbox_cursor c
    where o.position > $1 and not ` + IsPublished + `
    order by o.position
    limit $2
) x`

// ReadStatus needs no leader. Its two statements see two moments.
func ReadStatus(ctx context.Context, db DB) (Status, error) { return readStatus(ctx, db, MaxWaiting) }

func readStatus(ctx context.Context, db DB, limit int) (s Status, err error) {
	var done, now snapshot
	var marks landmarks
	err = db.QueryRow(ctx, statusSQL, lockClass, MaxScheduled).Scan(&s.Leader, &s.Epoch, &s.Leading, &s.Paused, &done,
		&marks.xids, &marks.heads, &now, &s.Head, &s.Room, &s.ParkedKeys, &s.HeldEvents, &s.Scheduled, &s.OverdueSeconds,
		&s.Refused, &s.DatabaseBackAt, &s.BrokerBackAt, &s.Healing, &s.Lost, &s.DatabaseWentBack, &s.BrokerWentBack)
	if err != nil {
		return Status{}, fmt.Errorf("read outbox status: %w", err)
	}
	err = db.QueryRow(ctx, waitingSQL, marks.start(done, now), limit, s.Head).
		Scan(&s.Waiting, &s.Lag, &s.OldestWaiting, &s.WaitingFor)
	if err != nil {
		return Status{}, fmt.Errorf("count waiting events: %w", err)
	}
	return s, nil
}

var gauges = []*prometheus.Desc{
	desc("relay_has_leader", "1 while an instance leads, 0 when none does."),
	desc("relay_lag_events", "Positions given out from the first unpublished one on; an upper bound."),
	desc("relay_oldest_unpublished_seconds", "Age of the first unpublished event."),
	desc("relay_parked_keys", "Keys of which records are held."),
	desc("relay_held_events", "Events of parked keys."),
	desc("relay_position_room", "Positions that existing partitions still have; at 0 nothing can be added."),
	desc("scheduled_events", "Events that are due later."),
	desc("scheduled_overdue_seconds", "How long the oldest due one of them has not been added."),
	desc("refused", "1 while nothing is published until an operator confirms it."),
	desc("database_went_back", "1 while the database has gone back, and for an hour after."),
	desc("broker_went_back", "1 while the log has lost records, and for an hour after."),
}

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("outbox_"+name, help, nil, nil)
}

// Measure reads the outbox's gauges, with or without a leader. docs/operations.md explains them.
func Measure(ctx context.Context, db DB) ([]prometheus.Metric, error) {
	s, err := readStatus(ctx, db, 1)
	if err != nil {
		return nil, err
	}
	metrics := make([]prometheus.Metric, len(gauges))
	for i, value := range []float64{
		oneIf(s.Leading), float64(s.Lag), s.WaitingFor.Seconds(), float64(s.ParkedKeys), float64(s.HeldEvents),
		float64(s.Room), float64(s.Scheduled), s.OverdueSeconds, oneIf(s.Refused != nil), oneIf(s.DatabaseWentBack),
		oneIf(s.BrokerWentBack),
	} {
		metrics[i] = prometheus.MustNewConstMetric(gauges[i], prometheus.GaugeValue, value)
	}
	return metrics, nil
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

const heldSQL = `
select topic, reason, clock_timestamp() - parked_at
from public.outbox_parked
where not permanent and parked_at <= clock_timestamp() - $1 * interval '1 microsecond'
order by parked_at limit 1`

// CheckHeld is for a readiness check, on any instance. It fails if a key's events have been held for longer than limit
// and the broker does not refuse them for good: a topic or a right to it is missing, for example.
func CheckHeld(ctx context.Context, db DB, limit time.Duration) error {
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
