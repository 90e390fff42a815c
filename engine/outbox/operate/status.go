package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/outbox/window"
)

// DB is a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

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
	FirstWaiting  int64         `json:"-"`                        // position of the first of them; 0: none waits
	OldestWaiting *time.Time    `json:"oldest_waiting,omitempty"` // its business time; nil: none waits
	WaitingFor    time.Duration `json:"-"`                        // since then, by the database's clock
	ParkedKeys    int64         `json:"-"`
	HeldEvents    int64         `json:"held"`      // of parked keys
	Scheduled     int64         `json:"scheduled"` // events that are due later, counted up to MaxScheduled
	// OverdueSeconds is how long the oldest of them that is due has not been added.
	OverdueSeconds float64 `json:"overdue_seconds"`
	Restoring      bool    `json:"restoring"` // what a restore left is still being published
}

// MaxScheduled is where [ReadStatus] stops counting scheduled events.
const MaxScheduled = 100_000

// MaxWaiting is where [ReadStatus] stops counting: an outage of an hour must not make its answer slow.
const MaxWaiting = 10_000

const statusSQL = `
select c.leader, c.epoch, c.lease_until, c.lease_until > clock_timestamp(), c.done::text, c.mark_x, c.mark_h,
    pg_current_snapshot()::text, coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
    (select count(*) from public.outbox_parked), (select count(*) from public.outbox_held),
    c.old_done is not null or c.sysid is distinct from (select system_identifier from pg_control_system()),
    (select count(*) from (select from public.outbox_scheduled limit $2) x),
    coalesce((select greatest(extract(epoch from clock_timestamp() - min(due_at)), 0) from public.outbox_scheduled),
        0)::float8
from public.outbox_cursor c where c.name = $1`

const waitingSQL = `
select count(*), coalesce(min(position), 0), (array_agg(occurred_at order by position))[1],
    coalesce(extract(epoch from clock_timestamp() - (array_agg(occurred_at order by position))[1]), 0)::float8
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
func ReadStatus(ctx context.Context, db DB) (Status, error) { return readStatus(ctx, db, MaxWaiting) }

// readStatus counts the waiting events up to a limit.
func readStatus(ctx context.Context, db DB, limit int) (Status, error) {
	var (
		s            Status
		done, now    string
		xids         []uint64
		heads        []int64
		start        int64
		waitingSince float64
	)
	err := db.QueryRow(ctx, statusSQL, window.CursorName, MaxScheduled).Scan(&s.Leader, &s.Epoch, &s.LeaseUntil,
		&s.Leading, &done, &xids, &heads, &now, &s.Head, &s.ParkedKeys, &s.HeldEvents, &s.Restoring,
		&s.Scheduled, &s.OverdueSeconds)
	if err == nil && !s.Restoring { // else its transaction ids may be another cluster's: count from the beginning
		start, err = window.ScanStart(done, now, xids, heads)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read outbox status: %w", err)
	}
	err = db.QueryRow(ctx, waitingSQL, window.CursorName, start, limit).Scan(
		&s.Waiting, &s.FirstWaiting, &s.OldestWaiting, &waitingSince)
	if err != nil {
		return Status{}, fmt.Errorf("count waiting events: %w", err)
	}
	s.WaitingFor = max(0, time.Duration(waitingSince*float64(time.Second)))
	return s, nil
}
